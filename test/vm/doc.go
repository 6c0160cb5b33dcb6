// Package vm tries Bonsai on real machines: virtual ones, with a kernel, an init and a disk of their own, as a
// distribution makes them. What a developer's machine hides shows there: kernel modules that nobody has loaded, cgroup
// v2 below systemd, AppArmor, a power cut.
//
// An [Image] is made with debootstrap from the packages of a Debian release, from the mirror that this machine's apt
// uses, and is kept below -dir until its recipe in image.go changes. A [Machine] is a qemu whose disk is a layer above
// the image's: making one costs nothing, and nothing that it does reaches the image. [Programs] are a second disk, with
// what is to be tried. A machine's network is loopback's: it reaches nobody, and is reached by ssh from here. A
// [Network] connects machines with one another, and can lose, delay or cut off their packets. Commands, copies, reboots
// and power cuts are methods, and each waits for what it says, not for a time.
//
// The tests need root, qemu-system-x86_64, qemu-img, debootstrap, mkfs.ext4, 4 GiB of memory for a machine (6 GiB for
// TestConformance, 9 GiB for three machines) and 10 GiB of disk, and run only with -machines (make e2e-vm).
package vm
