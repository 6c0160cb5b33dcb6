package vm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Network is an Ethernet switch between machines, and nothing else: it has no way out. Every machine has a port,
// through which qemu sends frames as its netdev "stream" does: four bytes of length, big-endian, and the frame.
type Network struct {
	dir   string
	ports [maxMachines]*Port

	mu sync.Mutex
	at map[[6]byte]*Port // the port behind which each Ethernet address was last seen
}

// maxMachines is how many machines a Network connects. The image has an address for each.
const maxMachines = 5

// Fault is what a cable does to the frames of its machine, in both directions.
type Fault struct {
	Down  bool          // no frame passes
	Loss  float64       // the share of frames that are lost, 0 to 1
	Delay time.Duration // how much later a frame arrives
}

// Port is the end of a machine's cable.
type Port struct {
	network  *Network
	listener net.Listener

	mu    sync.Mutex
	fault Fault
	out   chan frame // to the machine, nil while it has no power
}

type frame struct {
	due   time.Time
	bytes []byte
}

const (
	// maxFrame is the largest frame that qemu sends, segmentation offload included, in bytes.
	maxFrame = 68 << 10
	// queued is how many frames wait for a machine. More are lost, as in any switch.
	queued = 4096
)

// NewNetwork returns a network without machines, whose sockets are files in dir. Close ends it.
func NewNetwork(dir string) (*Network, error) {
	n := &Network{dir: dir, at: map[[6]byte]*Port{}}
	for i := range n.ports {
		l, err := net.Listen("unix", n.socket(i+1))
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.ports[i] = &Port{network: n, listener: l}
		go n.ports[i].serve()
	}
	return n, nil
}

// socket is where the qemu of a machine connects. Machines count from 1.
func (n *Network) socket(machine int) string {
	return filepath.Join(n.dir, "port"+strconv.Itoa(machine))
}

// Port returns a machine's port. Machines count from 1.
func (n *Network) Port(machine int) *Port { return n.ports[machine-1] }

// Close takes the network's sockets away. Connected machines keep their cable until their power is cut.
func (n *Network) Close() error {
	var errs []error
	for _, p := range n.ports {
		if p != nil {
			errs = append(errs, p.listener.Close())
		}
	}
	return errors.Join(errs...)
}

// Set lets the cable behave as a fault says, or well by the empty one. Frames under way keep their delay.
func (p *Port) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// serve connects one machine after the other, as they get and lose power.
func (p *Port) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // the network is closed
		}
		p.connect(conn)
	}
}

// connect passes on what a machine sends until it has no power.
func (p *Port) connect(conn net.Conn) {
	out := make(chan frame, queued)
	p.setOut(out)
	var wg sync.WaitGroup
	wg.Go(func() { deliver(conn, out) })
	in := bufio.NewReaderSize(conn, maxFrame)
	for {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			break
		}
		n := binary.BigEndian.Uint32(length[:])
		if n > maxFrame {
			break // this is no qemu
		}
		bytes := make([]byte, n)
		if _, err := io.ReadFull(in, bytes); err != nil {
			break
		}
		p.network.forward(p, bytes)
	}
	p.setOut(nil)
	close(out) // nobody sends any more: send holds the lock
	_ = conn.Close()
	wg.Wait()
}

func (p *Port) setOut(out chan frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = out
}

// deliver writes frames to a machine when they are due. They are in order: one that overtakes would be a fault that
// no cable has.
func deliver(conn net.Conn, out <-chan frame) {
	for f := range out {
		if wait := time.Until(f.due); wait > 0 {
			<-time.After(wait)
		}
		if _, err := conn.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f.bytes)))); err != nil {
			_ = conn.Close() // the reader ends, and closes out
		} else if _, err := conn.Write(f.bytes); err != nil {
			_ = conn.Close()
		}
	}
}

// forward sends a frame of a machine to the one that it is for, or to all others.
func (n *Network) forward(from *Port, bytes []byte) {
	passes, delay := from.pass()
	if !passes || len(bytes) < 14 {
		return
	}
	var to, sender [6]byte
	copy(to[:], bytes[:6])
	copy(sender[:], bytes[6:12])
	n.mu.Lock()
	n.at[sender] = from
	known := n.at[to]
	n.mu.Unlock()
	for _, p := range n.ports {
		if p != from && (known == nil || known == p) {
			p.send(bytes, delay)
		}
	}
}

// pass draws whether a frame passes the cable, and how much later.
func (p *Port) pass() (bool, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.fault.Down && (p.fault.Loss == 0 || rand.Float64() >= p.fault.Loss), p.fault.Delay
}

// send puts a frame into the queue to the machine.
func (p *Port) send(bytes []byte, delay time.Duration) {
	passes, mine := p.pass()
	if !passes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		return
	}
	select {
	case p.out <- frame{time.Now().Add(delay + mine), bytes}:
	default:
	}
}
