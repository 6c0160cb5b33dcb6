package registry

import (
	"bytes"
	"encoding/json"
	"errors"
)

// errJSON is for bytes in which no metadata can be found. What is wrong with them is for a decoder to say.
var errJSON = errors.New("no JSON object with metadata")

// metadataSpan is where the metadata of an object lies in its JSON.
type metadataSpan struct {
	start, end int // of the value, braces included
	// splice is where a resourceVersion goes in the order of the keys: at the next key's quote, or behind the last
	// value. 0: nowhere, as there is one already or nothing else.
	splice int
}

// scanMetadata finds the metadata of an object without decoding anything. Of bytes that are not JSON it may find some
// all the same; it does not read beyond them.
//
// It walks the bytes once for the keys of the object and once for those of the metadata. It keeps only indexes and
// allocates nothing, as long as keys have no escapes. Two keys "metadata" are an error: a decoder would take the last
// one or merge both, and a splice into one of them would be lost.
func scanMetadata(value []byte) (metadataSpan, error) {
	var m metadataSpan
	found, twice := false, false
	err := eachKey(value, skipSpace(value, 0), func(key []byte, _, start, end int) {
		if isKey(key, "metadata") {
			found, twice = true, found
			m.start, m.end = start, end
		}
	})
	if err != nil || !found || twice || value[m.start] != '{' {
		return metadataSpan{}, errJSON
	}
	taken := false
	err = eachKey(value, m.start, func(key []byte, quote, _, end int) {
		switch {
		case isKey(key, "resourceVersion"):
			taken = true
		case m.splice == 0 || value[m.splice] != '"': // no later key was met yet
			m.splice = end
			if string(key) > "resourceVersion" {
				m.splice = quote
			}
		}
	})
	if err != nil {
		return metadataSpan{}, errJSON
	}
	if taken {
		m.splice = 0
	}
	return m, nil
}

// eachFieldSet calls f for every field set (managedFields[].fieldsV1) of the metadata that starts at a place, with
// where the set starts and ends; of bytes that are not JSON for those before the mistake.
func eachFieldSet(value []byte, metadata int, f func(start, end int)) {
	// who found the metadata has seen that it can be read
	_ = eachKey(value, metadata, func(key []byte, _, start, end int) {
		if !isKey(key, "managedFields") || value[start] != '[' {
			return
		}
		for i := skipSpace(value, start+1); i < end; i = skipSpace(value, i+1) { // at an entry, or at the end
			next := skipValue(value, i)
			if next < 0 || eachKey(value, i, func(key []byte, _, start, end int) {
				if isKey(key, "fieldsV1") {
					f(start, end)
				}
			}) != nil {
				return
			}
			i = skipSpace(value, next) // at a comma, or at the end
		}
	})
}

// eachKey calls f for every key of the object at b[i]: with its text between the quotes, where its first quote is, and
// where its value starts and ends.
func eachKey(b []byte, i int, f func(key []byte, quote, start, end int)) error {
	if i >= len(b) || b[i] != '{' {
		return errJSON
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return nil
	}
	for {
		quote := i
		i = skipString(b, i)
		if i < 0 {
			return errJSON
		}
		key := b[quote+1 : i-1]
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return errJSON
		}
		start := skipSpace(b, i+1)
		end := skipValue(b, start)
		if end < 0 {
			return errJSON
		}
		f(key, quote, start, end)
		i = skipSpace(b, end)
		switch {
		case i < len(b) && b[i] == '}':
			return nil
		case i >= len(b) || b[i] != ',':
			return errJSON
		}
		i = skipSpace(b, i+1)
	}
}

// isKey compares a key's text, which may have escapes, with a name. A key with escapes is rare and costs a decoding.
func isKey(text []byte, name string) bool {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text) == name
	}
	var s string
	return json.Unmarshal(append(append([]byte{'"'}, text...), '"'), &s) == nil && s == name
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string at b[i]; -1 if there is none, or no end.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' { // ends at the opening quote
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the index behind the value at b[i]; -1 if there is none, or no end.
func skipValue(b []byte, i int) int {
	depth := 0
	for start := i; i < len(b); {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',', ' ', '\n', '\t', '\r':
			if depth == 0 { // the end of a number, true, false or null
				if i == start {
					return -1
				}
				return i
			}
			if b[i] == '}' || b[i] == ']' {
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		i++
	}
	return -1
}
