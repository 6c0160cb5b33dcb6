package testenv

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// program is one of the environment's, with its flags.
type program struct {
	name string
	argv []string
}

// processes are started programs. They are killed when the thread that started them ends, so that they have one that
// lasts until stop, and so die with this process.
type processes struct {
	forks   chan func()
	running []*running
}

// running is a process; ended is closed when it has ended.
type running struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

func newProcesses() *processes {
	p := &processes{forks: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for fork := range p.forks {
			fork()
		}
	}()
	return p
}

// start starts a program in dir, where its log is.
func (p *processes) start(what program, dir string) error {
	path := filepath.Join(dir, what.name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(what.argv[0], what.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	// an interrupt of the terminal is for the tests
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	done := make(chan error, 1)
	p.forks <- func() { done <- cmd.Start() }
	if err := <-done; err != nil {
		return fmt.Errorf("start %s: %w", what.name, err)
	}
	r := &running{cmd: cmd, log: path, ended: make(chan struct{})}
	p.running = append(p.running, r)
	go func() {
		cmd.Wait() //nolint:errcheck // that it ended is what counts
		close(r.ended)
	}()
	return nil
}

// failed tells which process has ended, with its last words; nil if all run.
func (p *processes) failed() error {
	for _, r := range p.running {
		select {
		case <-r.ended:
			said, _ := os.ReadFile(r.log)
			lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
			return fmt.Errorf("%s ended (%s): %s", filepath.Base(r.cmd.Path), r.cmd.ProcessState, lines[len(lines)-1])
		default:
		}
	}
	return nil
}

// stop kills all processes, whose state nobody needs any more, and waits for their ends.
func (p *processes) stop() {
	for _, r := range p.running {
		r.cmd.Process.Kill() //nolint:errcheck // it may have ended
	}
	for _, r := range p.running {
		<-r.ended
	}
	close(p.forks)
}
