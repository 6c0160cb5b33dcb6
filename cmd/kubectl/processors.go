package main

import (
	"os"
	"runtime"
)

// oneProcessor leaves one processor to a command that waits most of its time: waking others for every answer costs a
// fifth of the CPU time of an apply of 500 objects. $GOMAXPROCS says more than it.
func oneProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
