package kubectl

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
)

// connect is a proxy as HTTP knows it. Whatever name it is asked for, it connects to that port of this machine.
func (f *front) connect(w http.ResponseWriter, r *http.Request) {
	line := "proxy " + r.Method + " " + r.Host
	if r.TLS != nil {
		line = "secure " + line
	}
	if v := r.Header.Get("Proxy-Authorization"); v != "" {
		line += " Proxy-Authorization=" + v
	}
	f.tell("%s", line)
	if r.Header.Get("Proxy-Authorization") == "Basic cmVmdXNlZDp4" { // refused:x
		http.Error(w, "no", http.StatusProxyAuthRequired)
		return
	}
	_, port, _ := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect {
		httputil.NewSingleHostReverseProxy(
			&url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", port)}).ServeHTTP(w, r)
		return
	}
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		to.Close()
		return
	}
	io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n")
	join(from, buffered, to)
}

// join passes on what both ends say until one has nothing more.
func join(a net.Conn, fromA io.Reader, b net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(b, fromA); b.Close() }) // ends with either
	both.Go(func() { _, _ = io.Copy(a, b); a.Close() })
	both.Wait()
}

// serveSOCKS is a proxy of SOCKS5 (RFC 1928), with names and passwords (RFC 1929) for those who offer them.
func (f *front) serveSOCKS() {
	for {
		c, err := f.socks.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = f.socksConn(c) // the client is told by its connection's end
		}()
	}
}

func (f *front) socksConn(c net.Conn) error {
	user := ""
	read := func(n int) ([]byte, error) { b := make([]byte, n); _, err := io.ReadFull(c, b); return b, err }
	counted := func() ([]byte, error) {
		n, err := read(1)
		if err != nil {
			return nil, err
		}
		return read(int(n[0]))
	}
	if _, err := read(1); err != nil {
		return err
	}
	methods, err := counted()
	if err != nil {
		return err
	}
	method := byte(0)
	for _, m := range methods {
		method = max(method, m)
	}
	if _, err := c.Write([]byte{5, method}); err != nil {
		return err
	}
	if method == 2 {
		if _, err := read(1); err != nil {
			return err
		}
		name, err := counted()
		if err != nil {
			return err
		}
		password, err := counted()
		if err != nil {
			return err
		}
		user = " as " + string(name) + ":" + string(password)
		if _, err := c.Write([]byte{1, 0}); err != nil {
			return err
		}
	}
	head, err := read(4)
	if err != nil {
		return err
	}
	var host string
	switch head[3] {
	case 1:
		ip, err := read(4)
		if err != nil {
			return err
		}
		host = net.IP(ip).String()
	case 3:
		name, err := counted()
		if err != nil {
			return err
		}
		host = string(name)
	}
	port, err := read(2)
	if err != nil {
		return err
	}
	number := strconv.Itoa(int(binary.BigEndian.Uint16(port)))
	f.tell("SOCKS %s%s", net.JoinHostPort(host, number), user)
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", number))
	if err != nil {
		_, err = c.Write([]byte{5, 1, 0, 1, 0, 0, 0, 0, 0, 0})
		return err
	}
	if _, err := c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	join(c, c, to)
	return nil
}
