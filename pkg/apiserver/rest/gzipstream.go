package rest

import (
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"sync"
)

// gzipStream compresses what is written to it, and sends all of it at each Flush. A compressor has some 700 KB, which
// is too much for a watch that waits for hours. So it borrows one between the first write and the Flush: what a fresh
// one makes continues the stream, since Flush ends a block and at a whole byte.
type gzipStream struct {
	out   io.Writer
	begun bool          // the header is written
	with  *flate.Writer // nil between Flush and the next write
	sum   uint32        // CRC-32 of everything written
	size  uint32        // its length, modulo 2^32
}

// compressors are those that no stream uses.
var compressors = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil { // only for a level that does not exist
		return (*flate.Writer)(nil)
	}
	return w
}}

// newGzipStream sets the headers of a compressed answer, whose body begins with the first write.
func newGzipStream(w http.ResponseWriter) *gzipStream {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	return &gzipStream{out: w}
}

// Write implements io.Writer.
func (z *gzipStream) Write(p []byte) (int, error) {
	if !z.begun {
		// deflate, no flags, no time, fastest, unknown system
		if _, err := z.out.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}); err != nil {
			return 0, err
		}
		z.begun = true
	}
	if z.with == nil {
		z.with = compressors.Get().(*flate.Writer)
		z.with.Reset(z.out)
	}
	z.sum = crc32.Update(z.sum, crc32.IEEETable, p)
	z.size += uint32(len(p)) //nolint:gosec // modulo 2^32 is what the format wants
	return z.with.Write(p)
}

// Flush sends what was written.
func (z *gzipStream) Flush() error {
	if z.with == nil {
		return nil
	}
	err := z.with.Flush()
	z.with.Reset(io.Discard)
	compressors.Put(z.with)
	z.with = nil
	return err
}

// Close ends the stream, if it has begun, with an empty last block and the sum of all.
func (z *gzipStream) Close() error {
	if err := z.Flush(); err != nil || !z.begun {
		return err
	}
	end := binary.LittleEndian.AppendUint32([]byte{3, 0}, z.sum)
	_, err := z.out.Write(binary.LittleEndian.AppendUint32(end, z.size))
	return err
}
