package daemon

import (
	"crypto/tls"
	"os"
	"sync"
)

// KeyPair is a certificate with its key, in two files. It is safe for concurrent use.
type KeyPair struct {
	certFile, keyFile string

	mu      sync.Mutex
	current *tls.Certificate // the last that could be read
	read    [2]os.FileInfo   // of its two files
}

// LoadKeyPair reads a certificate and its key.
func LoadKeyPair(certFile, keyFile string) (*KeyPair, error) {
	k := &KeyPair{certFile: certFile, keyFile: keyFile}
	if err := k.refresh(); err != nil {
		return nil, err
	}
	return k, nil
}

// Current is the certificate that the files have now: whoever renews it writes them again, or lets a link point to
// others, and restarts nothing. While they cannot be read or do not belong together, because so far only one is
// written, it is the one from before; the next call tries again.
func (k *KeyPair) Current() *tls.Certificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.refresh() // the one from before serves; without a valid one clients say so
	return k.current
}

// refresh reads the files if they are others than those of the current certificate. They are looked at before they are
// read: what is written between the two is seen by the next call.
func (k *KeyPair) refresh() error {
	var found [2]os.FileInfo
	changed := k.current == nil
	for i, file := range []string{k.certFile, k.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		found[i] = info
		changed = changed || !sameContent(info, k.read[i])
	}
	if !changed {
		return nil
	}
	c, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return err
	}
	k.current, k.read = &c, found
	return nil
}

func sameContent(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
