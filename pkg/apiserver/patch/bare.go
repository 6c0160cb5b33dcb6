package patch

import "bytes"

// Bare returns doc, the JSON of an object as a codec makes it, without metadata.managedFields: doc itself if there is
// none. They are nearly half of a small object, and who merges, reads and checks the rest need not do it with them.
func Bare(doc []byte) []byte {
	_, metadata, _ := member(doc, 0, "metadata")
	if metadata < 0 {
		return doc
	}
	from, _, to := member(doc, metadata, "managedFields")
	if from < 0 {
		return doc
	}
	switch { // one comma goes, too
	case doc[from-1] == ',':
		from--
	case doc[to] == ',':
		to++
	}
	out := make([]byte, 0, len(doc)-(to-from))
	return append(append(out, doc[:from]...), doc[to:]...)
}

// member finds a member of the object that begins at doc[at]: where its name begins, where its value does, and where
// that ends. All are -1 if there is none, or doc is not the compact JSON that encoders write.
func member(doc []byte, at int, name string) (from, value, to int) {
	if at >= len(doc) || doc[at] != '{' {
		return -1, -1, -1
	}
	for from = at + 1; from < len(doc) && doc[from] == '"'; from = to + 1 {
		colon := endOfValue(doc, from)
		value = colon + 1
		if colon < 0 || value >= len(doc) || doc[colon] != ':' {
			break
		}
		if to = endOfValue(doc, value); to < 0 {
			break
		}
		if string(doc[from+1:colon-1]) == name {
			return from, value, to
		}
		if doc[to] != ',' {
			break
		}
	}
	return -1, -1, -1
}

// endOfValue returns where the value that begins at doc[at] ends; there is more of doc. -1 if it does not end.
func endOfValue(doc []byte, at int) int {
	depth := 0
	for i := at; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			if i = endOfString(doc, i); i < 0 {
				return -1
			}
			if depth == 0 && doc[at] == '"' {
				return within(doc, i+1)
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // of what holds a number or a word
				return i
			}
			if depth--; depth == 0 {
				return within(doc, i+1)
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// endOfString returns where the quote is that ends the string at doc[at], or -1.
func endOfString(doc []byte, at int) int {
	for i := at + 1; i < len(doc); i++ {
		n := bytes.IndexAny(doc[i:], `"\`)
		if n < 0 {
			return -1
		}
		if i += n; doc[i] == '"' {
			return i
		}
		i++ // what is escaped
	}
	return -1
}

func within(doc []byte, i int) int {
	if i >= len(doc) {
		return -1
	}
	return i
}
