package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// writeKubeconfigs writes one kubeconfig per identity, credentials inside.
func writeKubeconfigs(c plan.Config) error {
	names := []string{plan.Administrator}
	for _, m := range c.Members() {
		names = append(names, m.Of("controller-manager"), m.Of("scheduler"))
	}
	for _, node := range c.Nodes {
		names = append(names, "kubelet-"+node.Name(), "proxy-"+node.Name(), "network-"+node.Name())
	}
	for _, name := range names {
		kubeconfig, err := kubeconfig(c, name)
		if err != nil {
			return fmt.Errorf("make the kubeconfig of %s: %w", name, err)
		}
		data, err := clientcmd.Write(*kubeconfig)
		if err != nil {
			return fmt.Errorf("encode the kubeconfig of %s: %w", name, err)
		}
		if err := host.WriteFile(c.Layout().Kubeconfig(name), data); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
	}
	return nil
}

// kubeconfig returns the configuration with which the identity called name reaches the API server: by loopback for the
// administrator, who is on the host and may keep the file longer than the cluster lasts.
func kubeconfig(c plan.Config, name string) (*clientcmdapi.Config, error) {
	l := c.Layout()
	var data [3][]byte
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		b, err := os.ReadFile(l.PKI(file))
		if err != nil {
			return nil, err
		}
		data[i] = b
	}
	server := c.Server()
	if name == plan.Administrator {
		server = c.LocalServer()
	}
	k := clientcmdapi.NewConfig()
	own := c.Context()
	k.Clusters[own] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: data[0]}
	k.AuthInfos[own] = &clientcmdapi.AuthInfo{ClientCertificateData: data[1], ClientKeyData: data[2]}
	k.Contexts[own] = &clientcmdapi.Context{Cluster: own, AuthInfo: own}
	k.CurrentContext = own
	return k, nil
}

// ownerExtension is the extension of a context in a user's kubeconfig that names the data directory of the cluster it is for.
const ownerExtension = "bonsai-data-dir"

// exportContext writes the administrator's context into the user's kubeconfig ($KUBECONFIG's first file or ~/.kube/config)
// and makes it the current one, as kind does. Nobody but the file's owner may read it then, unless c.KubeconfigMode says otherwise; out hears of it
// if others could.
func exportContext(ctx context.Context, c plan.Config, out io.Writer) error {
	admin, err := kubeconfig(c, plan.Administrator)
	if err != nil {
		return err
	}
	owner, err := json.Marshal(c.DataDir)
	if err != nil {
		return err
	}
	own := c.Context()
	admin.Contexts[own].Extensions = map[string]runtime.Object{ownerExtension: &runtime.Unknown{Raw: owner, ContentType: runtime.ContentTypeJSON}}
	file := userFileNow()
	path, was := file.path, fs.FileMode(0)
	if err := file.caller.as(func() error { was = modeOf(path); return nil }); err != nil {
		return err
	}
	err = file.change(ctx, func(was fs.FileMode) fs.FileMode { return kubeconfigMode(c, was) }, func(k *clientcmdapi.Config) {
		k.Clusters[own] = admin.Clusters[own]
		k.AuthInfos[own] = admin.AuthInfos[own]
		k.Contexts[own] = admin.Contexts[own]
		k.CurrentContext = own
	})
	if is := kubeconfigMode(c, was); err == nil && was&^is != 0 {
		fmt.Fprintf(out, "WARNING: others could read %s (mode %04o). It has the administrator's key: its mode is %04o now (bonsai up --kubeconfig-mode keeps another).\n", path, was, is)
	}
	if err == nil && file.caller != nil {
		fmt.Fprintf(out, "The context is in %s, the kubeconfig of %s, who called sudo.\n", path, file.caller.name)
	}
	return err
}

// ExportContext writes the context of the cluster in dataDir into the user's kubeconfig, as its start did.
func ExportContext(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := loadControlPlane(dataDir)
	if err != nil {
		return err
	}
	return exportContext(ctx, c, out)
}

// PrintKubeconfig prints the kubeconfig of the administrator of the cluster in dataDir.
func PrintKubeconfig(dataDir string, out io.Writer) error {
	c, err := loadControlPlane(dataDir)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(c.Layout().Kubeconfig(plan.Administrator))
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// removeContext undoes exportContext, by the data directory that a context says it is for: the cluster's name may be lost, and a context of
// its name have become another's. By sudo it is taken from root's own kubeconfig, too: a start as root has written it there.
func removeContext(ctx context.Context, c plan.Config) error {
	files := []userFile{userFileNow()}
	if files[0].caller != nil {
		files = append(files, userFile{path: clientcmd.NewDefaultPathOptions().GetDefaultFilename()})
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, removeContextFrom(ctx, c, file))
	}
	return errors.Join(errs...)
}

func removeContextFrom(ctx context.Context, c plan.Config, file userFile) error {
	return file.change(ctx, asItWas, func(k *clientcmdapi.Config) {
		for own, of := range k.Contexts {
			if contextOwner(of) != c.DataDir {
				continue
			}
			delete(k.Clusters, own)
			delete(k.AuthInfos, own)
			delete(k.Contexts, own)
			if k.CurrentContext == own {
				k.CurrentContext = ""
			}
		}
	})
}

// contextOwner returns the data directory of the cluster that a context of the user's kubeconfig is for, or "".
func contextOwner(context *clientcmdapi.Context) string {
	if context == nil {
		return ""
	}
	owner, ok := context.Extensions[ownerExtension].(*runtime.Unknown)
	if !ok {
		return ""
	}
	var dataDir string
	if json.Unmarshal(owner.Raw, &dataDir) != nil {
		return ""
	}
	return dataDir
}

// userKubeconfig reads the user's kubeconfig, empty if there is none.
func userKubeconfig() (k *clientcmdapi.Config, err error) {
	file := userFileNow()
	err = file.caller.as(func() error {
		k, err = file.read()
		return err
	})
	return k, err
}

// read reads the kubeconfig, empty if there is none.
func (f userFile) read() (*clientcmdapi.Config, error) {
	path := f.path
	k, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, &UnreadableKubeconfigError{path, f.explain(err)}
	}
	return k, nil
}

// UnreadableKubeconfigError is that of a kubeconfig of the user's that cannot be read or is none.
type UnreadableKubeconfigError struct {
	Path string
	Err  error
}

func (e *UnreadableKubeconfigError) Error() string {
	return fmt.Sprintf("read the kubeconfig %s: %v", e.Path, e.Err)
}

func (e *UnreadableKubeconfigError) Unwrap() error { return e.Err }

// ownerOnly is the mode of a kubeconfig that others may not read.
const ownerOnly fs.FileMode = 0o600

// kubeconfigMode returns the mode of a kubeconfig that gets the administrator's key, from the one it had; 0: it is new.
func kubeconfigMode(c plan.Config, was fs.FileMode) fs.FileMode {
	switch {
	case c.KubeconfigMode != 0:
		return c.KubeconfigMode
	case was == 0:
		return ownerOnly
	}
	return was & ownerOnly
}

// asItWas keeps the mode of a kubeconfig that gets nothing.
func asItWas(was fs.FileMode) fs.FileMode { return was }

// change applies change to the file under client-go's lock, with its user's rights, and writes it only if that or its mode changes. A file
// that would be left with nothing in it is removed.
func (f userFile) change(ctx context.Context, mode func(was fs.FileMode) fs.FileMode, change func(*clientcmdapi.Config)) error {
	unreadable := (*UnreadableKubeconfigError)(nil)
	err := f.caller.as(func() error {
		if _, differs, err := f.changed(change); err != nil || !differs && modeOf(f.path) == mode(modeOf(f.path)) {
			return err
		}
		unlock, err := lockKubeconfig(ctx, f.path, kubeconfigPatience)
		if err != nil {
			return err
		}
		k, _, err := f.changed(change) // others may have written meanwhile
		if err == nil {
			err = writeUserKubeconfig(f.path, k, mode(modeOf(f.path)))
		}
		return errors.Join(err, unlock())
	})
	if err == nil || errors.As(err, &unreadable) {
		return err
	}
	return f.explain(err)
}

// check returns an error if the file cannot be written with the rights of who called sudo: found before a start, it costs nothing.
func (f userFile) check(ctx context.Context) error {
	if f.caller == nil || host.StatError(filepath.Dir(f.path)) != nil {
		return nil
	}
	return f.explain(f.caller.as(func() error {
		if info, err := os.Stat(f.path); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) != f.caller.uid {
			return &fs.PathError{Op: "write", Path: f.path, Err: fs.ErrPermission}
		}
		unlock, err := lockKubeconfig(ctx, f.path, kubeconfigPatience)
		if err == nil {
			err = unlock()
		}
		return err
	}))
}

// explain says what to do about a file or directory that who called sudo may not use, as one that an earlier command made as root.
func (f userFile) explain(err error) error {
	if f.caller == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: %s called sudo and may not use it. Run: sudo chown -R %[2]s: %s; or choose another file: sudo KUBECONFIG=FILE bonsai …",
		err, f.caller.name, filepath.Dir(f.path))
}

// modeOf is a file's mode; 0: it is not there.
func modeOf(path string) fs.FileMode {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Mode().Perm()
}

// changed is the kubeconfig with change applied, and whether that makes a difference.
func (f userFile) changed(change func(*clientcmdapi.Config)) (k *clientcmdapi.Config, differs bool, err error) {
	if k, err = f.read(); err != nil {
		return nil, false, err
	}
	before, err := clientcmd.Write(*k)
	if err != nil {
		return nil, false, err
	}
	change(k)
	after, err := clientcmd.Write(*k)
	return k, !bytes.Equal(before, after), err
}

// kubeconfigPatience is how long others may hold the kubeconfig's lock, which they do while they write one file.
const kubeconfigPatience = 5 * time.Second

// lockKubeconfig waits for the lock that client-go takes to write a kubeconfig: a file beside it, which whoever makes it has.
func lockKubeconfig(ctx context.Context, path string, patience time.Duration) (unlock func() error, err error) {
	lock := path + ".lock"
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = host.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, f.Close()
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("lock the kubeconfig: %w: if no kubectl runs, remove %s", err, lock)
	case err != nil:
		return nil, fmt.Errorf("lock the kubeconfig: %w", err)
	}
	return func() error { return os.Remove(lock) }, nil
}

func writeUserKubeconfig(path string, k *clientcmdapi.Config, mode fs.FileMode) error {
	_, noLink := os.Readlink(path)
	if len(k.Clusters)+len(k.AuthInfos)+len(k.Contexts) == 0 && noLink != nil { // a link's target would keep the key
		return host.IgnoreMissing(os.Remove(path))
	}
	data, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	if err := replaceUserFile(path, data, mode); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}

// replaceUserFile writes a file of the user's whole or not at all: it has contexts that nobody else knows, and the disk may be full. A link is
// followed, and who owns the file stays.
func replaceUserFile(path string, data []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once renamed
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode))
	if info, statErr := os.Stat(path); statErr == nil && err == nil {
		owner := info.Sys().(*syscall.Stat_t)
		err = f.Chown(int(owner.Uid), int(owner.Gid))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Rename(f.Name(), path)
	if errors.Is(err, syscall.EBUSY) { // a mount point, as in a container, can only be written
		err = errors.Join(os.WriteFile(path, data, mode), os.Chmod(path, mode))
	}
	return err
}
