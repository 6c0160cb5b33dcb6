package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// jumpedNow is what time.Now begins with in a jumping build: the clock is off by as many seconds as clockJump says.
// Nothing else is: timers and what is measured go by the monotonic clock, which no jump moves.
const jumpedNow = `	sec, nsec, mono := runtimeNow()
	sec += atomic.LoadInt64(&clockJump)
`

// jumpVariable is a file of package time. The link name lets main write it.
const jumpVariable = `package time

import _ "unsafe"

//go:linkname clockJump
var clockJump int64
`

// jumpReader is a file of every main package: the jump is what the file clock-jump beside the program says.
const jumpReader = `package main

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
	_ "unsafe"
)

//go:linkname clockJump time.clockJump
var clockJump int64

func init() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	read := func() {
		said, err := os.ReadFile(filepath.Join(filepath.Dir(self), "clock-jump"))
		if seconds, bad := strconv.ParseInt(string(said), 10, 64); err == nil && bad == nil {
			atomic.StoreInt64(&clockJump, seconds)
		}
	}
	read()
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			read()
		}
	}()
}
`

// jumpingBuild builds our programs and etcd with a clock that a file moves, beside what else a cluster needs. The clock
// of the machine is everybody's, and no namespace has one of its own; so the compiler is given another time.Now, and
// the programs are as they are.
func jumpingBuild(t *testing.T) (bin string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("SKIPPED: builds programs (%v)", err)
	}
	bin, sources := filepath.Join(t.TempDir(), "bin"), t.TempDir()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	overlay := func(path, text string) {
		file := filepath.Join(sources, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	library := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	text, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(jumpedNow, "\n")
	with := strings.Replace(string(text), "func Now() Time {\n"+first+"\n", "func Now() Time {\n"+jumpedNow, 1)
	with = strings.Replace(with, "import (\n", "import (\n\t\"sync/atomic\"\n", 1)
	if !strings.Contains(with, jumpedNow) {
		t.Fatal("Go's time.Now is not as this test knows it")
	}
	overlay(filepath.Join(library, "time.go"), with)
	overlay(filepath.Join(library, "clockjump.go"), jumpVariable)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mains, err := filepath.Glob(filepath.Join(root, "cmd", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(mains, filepath.Join(root, "deploy", "tools", "etcd", "main.go")) {
		overlay(filepath.Join(filepath.Dir(m), "clockjump.go"), jumpReader)
	}
	config, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(sources, "overlay.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-r", cluster.bin, bin).CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	setClock(t, bin, 0)
	for _, from := range []struct{ dir, packages string }{{root, "./cmd/..."},
		{filepath.Join(root, "deploy", "tools"), "./etcd"}} {
		build := exec.Command("go", "build", "-overlay", file, "-tags",
			"kustomize_disable_go_plugin_support,grpcnotrace", "-ldflags", "-s -w", "-o", bin+"/", from.packages)
		build.Dir, build.Env = from.dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s, %v", out, err)
		}
	}
	return bin
}

// setClock moves the clock of all programs of a jumping build to so much ahead of the machine's, or behind it. The file
// is written in place, for whoever has it mounted.
func setClock(t *testing.T, bin string, ahead time.Duration) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(bin, "clock-jump"), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// as long each time: no reader finds half of it
	if _, err := fmt.Fprintf(f, "%+08d", int(ahead.Seconds())); err != nil {
		t.Fatal(err)
	}
}
