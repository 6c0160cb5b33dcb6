/* pause holds the namespaces of a pod: it sleeps until SIGTERM or SIGINT and reaps the children it is given when it is PID 1
 * of a shared process namespace. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop(int sig) { (void)sig; _exit(0); }

static void reap(int sig) {
	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

int main(void) {
	struct sigaction ending = {.sa_handler = stop};
	struct sigaction reaping = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
	if (sigaction(SIGINT, &ending, NULL) || sigaction(SIGTERM, &ending, NULL) || sigaction(SIGCHLD, &reaping, NULL))
		return 1;
	for (;;)
		pause();
}
