package impersonation

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"bonsai/pkg/apiserver/request"
)

// key is a hash of what a decision was about: of one size, whatever the headers of a request hold.
type key [sha256.Size]byte

// callerKey is the caller's name.
func callerKey(caller *request.User) key {
	w := writer{sha256.New()}
	w.texts(caller.Name)
	return w.sum()
}

// identityKey is that caller may be wanted in mode m.
func identityKey(m *mode, caller, wanted *request.User) key {
	w := newWriter("identity", m, caller, wanted)
	return w.sum()
}

// actionKey is that caller may do as wanted, in mode m, what info asks.
func actionKey(m *mode, caller, wanted *request.User, info *request.Info) key {
	w := newWriter("action", m, caller, wanted)
	if !info.IsResource {
		w.texts(info.Verb, info.Path)
		return w.sum()
	}
	w.texts(info.Verb, info.APIGroup, info.APIVersion, info.Resource, info.Subresource, info.Namespace, info.Name,
		info.FieldSelector, info.LabelSelector)
	return w.sum()
}

// writer hashes texts and lists of them, each with its length before it, so that no two different ones hash alike.
type writer struct{ hash.Hash }

func newWriter(kind string, m *mode, caller, wanted *request.User) writer {
	w := writer{sha256.New()}
	w.texts(kind, m.name)
	w.user(caller)
	w.user(wanted)
	return w
}

func (w writer) sum() (k key) {
	w.Sum(k[:0])
	return k
}

func (w writer) texts(list ...string) {
	w.count(len(list))
	for _, s := range list {
		w.count(len(s))
		w.Write([]byte(s))
	}
}

func (w writer) count(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	w.Write(b[:])
}

func (w writer) user(u *request.User) {
	w.texts(u.Name, u.UID)
	w.texts(u.Groups...)
	w.count(len(u.Extra))
	for _, k := range sortedKeys(u.Extra) {
		w.texts(k)
		w.texts(u.Extra[k]...)
	}
}
