package images

import (
	"errors"
	"os"
	"path/filepath"

	suite "k8s.io/kubernetes/test/utils/image"
)

// notInImages are the parts of a Debian tree that a container does not need.
var notInImages = map[string]bool{
	"proc": true, "sys": true, "dev": true, "debootstrap": true, "var/log": true, "var/cache/apt/archives": true,
	"var/lib/apt/lists": true,
	"usr/share/doc":     true, "usr/share/man": true, "usr/share/locale": true, "usr/share/info": true,
}

const nginxConf = `user root;
worker_processes 1;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
  access_log /dev/stdout;
  default_type text/html;
  server { listen 80 default_server; server_name _; location / { root /usr/share/nginx/html; index index.html; } }
}
`

// debian builds the images that stand on the Debian tree: agnhost and what is derived from it, nginx, perl, …
func (b builder) debian() error {
	base, err := b.layer(b.debianBase)
	if err != nil {
		return err
	}
	defer base.remove()
	dns, err := b.layer(func(l *layer) { l.program("coredns", b.CoreDNS, 0o755) })
	if err != nil {
		return err
	}
	defer dns.remove()
	agnhost, err := b.layer(b.agnhost)
	if err != nil {
		return err
	}
	defer agnhost.remove()
	shell := config{Cmd: []string{"bash"}}
	c := config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"},
		ExposedPorts: ports("80", "8080", "8081", "9376", "5000")}
	err = errors.Join(
		b.push(c, []*layer{base, dns, agnhost}, suite.GetE2EImage(suite.Agnhost),
			suite.GetE2EImage(suite.AgnhostPrev)),
		b.push(config{Cmd: []string{"nginx", "-g", "daemon off;"}, StopSignal: "SIGQUIT", ExposedPorts: ports("80")},
			[]*layer{base},
			suite.GetE2EImage(suite.Nginx), suite.GetE2EImage(suite.NginxNew)),
		b.push(config{User: "1234", Cmd: []string{"bash"}}, []*layer{base}, suite.GetE2EImage(suite.NonRoot)),
		b.push(shell, []*layer{base}, suite.GetE2EImage(suite.Perl),
			suite.GetE2EImage(suite.IpcUtils), suite.GetE2EImage(suite.DistrolessIptables)),
		b.push(shell, []*layer{base, dns}, suite.GetE2EImage(suite.GlibcDnsTesting)),
	)
	c.Cmd = []string{"test-webserver"}
	for animal, id := range map[string]suite.ImageID{"kitten": suite.Kitten, "nautilus": suite.Nautilus} {
		picture, e := b.layer(func(l *layer) {
			html := filepath.Join(b.Suite, animal, "html")
			l.program(animal+".jpg", filepath.Join(html, animal+".jpg"), 0o644)
			l.program("data.json", filepath.Join(html, "data.json"), 0o644)
		})
		if e != nil {
			return errors.Join(err, e)
		}
		err = errors.Join(err, b.push(c, []*layer{base, dns, agnhost, picture}, suite.GetE2EImage(id)))
		picture.remove()
	}
	return err
}

// debianBase is the Debian tree, busybox for what it lacks, and a small web site.
func (b builder) debianBase(l *layer) {
	l.tree(b.RootFS, notInImages)
	for _, d := range []string{"proc", "sys", "dev", "var/log/nginx"} {
		l.dir(d, 0o755)
	}
	l.program("usr/local/bin/busybox", b.program("busybox"), 0o755)
	for _, applet := range b.applets {
		if applet != "busybox" && !b.has("usr/bin/"+applet) && !b.has("usr/sbin/"+applet) {
			l.link("usr/local/bin/"+applet, "busybox")
		}
	}
	l.text("etc/nginx/nginx.conf", nginxConf)
	l.text("usr/share/nginx/html/index.html",
		"<!DOCTYPE html><html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1></body></html>\n")
}

func (b builder) has(name string) bool {
	_, err := os.Lstat(filepath.Join(b.RootFS, name))
	return err == nil
}

// agnhost is the suite's own test program with what specs expect around it: two users and groups of the image's own,
// and the distribution name that the image-volume specs look for.
func (b builder) agnhost(l *layer) {
	l.program("agnhost", b.program("agnhost"), 0o755)
	l.link("agnhost-2", "agnhost")
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		l.program(name, filepath.Join(b.Suite, "agnhost", "porter", name), 0o644)
	}
	passwd, err := os.ReadFile(filepath.Join(b.RootFS, "etc/passwd"))
	l.err = errors.Join(l.err, err)
	group, err := os.ReadFile(filepath.Join(b.RootFS, "etc/group"))
	l.err = errors.Join(l.err, err)
	l.text("etc/passwd", string(passwd)+"user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n")
	l.text("etc/group", string(group)+
		"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n")
	l.text("etc/os-release",
		"NAME=\"Alpine Linux\"\nID=alpine\nVERSION_ID=3.22.0\nPRETTY_NAME=\"Alpine Linux v3.22\"\n")
	l.dir("uploads", 0o755)
	l.dir("var/registry", 0o755)
}

func ports(numbers ...string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, n := range numbers {
		out[n+"/tcp"] = struct{}{}
	}
	return out
}
