// Package tour walks a reader through what a cluster does, on a running cluster: what happens, who does it, where that
// stands in the code, and what the object is before and after.
//
// A chapter is a text file (chapters), whose form Parse describes. Each command in it is one that the reader could
// type,
// and each has what its answer must match, so that a test that plays all chapters fails when the text is no longer
// true.
package tour
