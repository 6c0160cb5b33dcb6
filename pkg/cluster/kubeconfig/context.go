package kubeconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/plan"
)

// ownerExtension is the extension of a context in a user's kubeconfig that names the data directory of the context's
// cluster.
const ownerExtension = "bonsai-data-dir"

// Export writes the administrator's context into the user's kubeconfig ($KUBECONFIG's first file or ~/.kube/config) and
// makes it the current one, as kind does. Afterwards only the file's owner may read it, unless c.KubeconfigMode says
// otherwise. It warns on out if others could read it before.
//
// It comes last in a start: if it fails, the cluster is up, and `bonsai kubeconfig export` can write the context later.
func Export(ctx context.Context, c plan.Config, out io.Writer) error {
	admin, err := Of(c, plan.Administrator)
	if err != nil {
		return err
	}
	owner, err := json.Marshal(c.DataDir)
	if err != nil {
		return err
	}
	own := c.Context()
	admin.Contexts[own].Extensions = map[string]runtime.Object{
		ownerExtension: &runtime.Unknown{Raw: owner, ContentType: runtime.ContentTypeJSON}}
	file := userFileNow()
	path, was := file.path, fs.FileMode(0)
	if err := file.caller.as(func() error { was = modeOf(path); return nil }); err != nil {
		return err
	}
	err = file.change(ctx, func(was fs.FileMode) fs.FileMode {
		return kubeconfigMode(c, was)
	}, func(k *clientcmdapi.Config) {
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

// Remove undoes Export. It finds contexts by the data directory that they name: the cluster's name may be lost, or a
// context of that name may be another cluster's by now. Under sudo it also looks into root's own kubeconfig, where a
// start as root has written it.
func Remove(ctx context.Context, c plan.Config) error {
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

// removeContextFrom removes the cluster's contexts from one file.
func removeContextFrom(ctx context.Context, c plan.Config, file userFile) error {
	return file.change(ctx, asItWas, func(k *clientcmdapi.Config) {
		for own, of := range k.Contexts {
			if OwnerOf(of) != c.DataDir {
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

// Owners returns the contexts of the user's kubeconfig by their names, each with the data directory of the cluster that
// it is for, or "".
func Owners() (map[string]string, error) {
	k, err := User()
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for name, context := range k.Contexts {
		owners[name] = OwnerOf(context)
	}
	return owners, nil
}

// OwnerOf returns the data directory of the cluster that a context of the user's kubeconfig is for, or "".
func OwnerOf(context *clientcmdapi.Context) string {
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

// kubeconfigMode returns the mode of a kubeconfig that gets the administrator's key. was is the mode that it had; 0:
// it is new.
func kubeconfigMode(c plan.Config, was fs.FileMode) fs.FileMode {
	switch {
	case c.KubeconfigMode != 0:
		return c.KubeconfigMode
	case was == 0:
		return ownerOnly
	}
	return was & ownerOnly
}
