// Package history shows that the API keeps its promises while etcd and kube-apiserver are killed: clients write, watch
// and list the same few objects, record what they were told, and a pure function (check) looks for answers that
// contradict each other.
package history

// history is what clients saw of one namespace's ConfigMaps: what they asked for, and what they were told. Moments are
// numbers of one counter that all clients share: a request whose ended is lower than another's begun was answered
// before that one was sent. Versions are resourceVersions, which are etcd's revisions, so that they can be compared
// across objects.
type history struct {
	writes   []write
	lists    []list
	watchers []watcher
	// end is the version of the last write, made after all others were answered. Every watcher must reach it.
	end uint64
}

type verb string

const (
	create verb = "create"
	update verb = "update" // with the resourceVersion that it is based on
	patch  verb = "patch"  // without one
	remove verb = "delete" // with the UID of what it is aimed at
)

type outcome string

const (
	// done: the server said so.
	done outcome = "done"
	// refused: the server said that it did nothing (a 4xx).
	refused outcome = "refused"
	// unknown: the answer was lost or says nothing (connection error, timeout, 5xx). The write happened or not, at once
	// or later.
	unknown outcome = "unknown"
)

// write is a request to change an object.
type write struct {
	verb    verb
	name    string
	outcome outcome
	// mark is the value, used once, that the write leaves in the object; a removal has none.
	mark string
	// base is the version that an update is based on.
	base uint64
	// version is that of the answer, if done; the answer to a removal has none.
	version uint64
	// uid is what a removal is aimed at; of other writes it is known if done.
	uid          string
	begun, ended int64
}

// object is a state of a ConfigMap.
type object struct {
	name, uid, mark string
	version         uint64
}

// list is the answer to a consistent list (one without a resourceVersion).
type list struct {
	version      uint64
	items        map[string]object
	begun, ended int64
}

// watcher is one client that follows all objects. It begins a segment with a list, when it starts and whenever its
// version is too old to go on (410); when its connection breaks it resumes after the last version of the segment.
type watcher struct {
	name     string
	segments []segment
}

type segment struct {
	from   list
	events []event
	// last is the version up to which the watcher was told everything: that of the last event or bookmark.
	last uint64
}

type eventType string

const (
	added    eventType = "ADDED"
	modified eventType = "MODIFIED"
	deleted  eventType = "DELETED"
)

// event is what a watcher was told. The object of a deletion is the last state, with the version of the deletion.
type event struct {
	typ    eventType
	object object
	seen   int64
}
