// Package rootless gives a user who is not root a machine of his own to run clusters on: a user namespace in which he
// is root, with mounts, a network and a tree of cgroups that belong to it. Everything above runs there as it does on
// a machine as root.
//
// # Processes
//
// The first command starts the keeper in the background (Keeper.Run). It lives outside, in a scope that the user's
// systemd delegates to it, and has two children: the first process of the namespaces (Begin, Init), which makes the
// mounts and then only holds the namespaces, and pasta or slirp4netns, which forwards their packets. The keeper listens
// at ports of the machine for what runs inside (package door).
//
// Every command enters the namespaces by becoming nsenter and then itself again (Enter). It and the supervisors of
// clusters hold a lease. When the last lease ends, the keeper ends, and with it everything that it made.
//
// # What a user gets
//
// Nothing that the kernel does not let him do himself: IDs from /etc/subuid and /etc/subgid by newuidmap and newgidmap,
// cgroups by his own systemd, ports above 1023. The files of the keeper are in his own $XDG_RUNTIME_DIR.
package rootless
