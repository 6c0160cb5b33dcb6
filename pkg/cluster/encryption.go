package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/etcd"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/steps"
)

const (
	// loadPatience bounds the wait until the API servers have loaded a file. They see a change at once, and look once a
	// minute if the kernel does not tell them.
	loadPatience = 90 * time.Second
	// settleFor is how long an API server may still write by the keys of a file that it has replaced: it takes requests
	// for done after that, too.
	settleFor = 10 * time.Second
	// rewritePatience bounds one Secret.
	rewritePatience = 30 * time.Second
)

// EnableEncryption makes the keys of the running cluster in dataDir, whose Secrets are not encrypted yet. restart
// reports whether the API servers must be started again to read them. Then RotateEncryption writes the Secrets.
func EnableEncryption(ctx context.Context, dataDir string) (restart bool, err error) {
	lock, err := machine.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	c, err := loadRunning(ctx, dataDir)
	if err != nil {
		return false, err
	}
	if c.EncryptSecrets && !encryption.IsRotating(c.Layout()) {
		return false, fmt.Errorf("the Secrets of the cluster in %s are encrypted already (%s shows the key, rotate changes it)",
			dataDir, encryption.Command(c.Layout(), "status"))
	}
	was := c
	c.EncryptSecrets = true
	if err := checkKeys(c); err != nil {
		return false, err
	}
	if len(others(c)) > 0 {
		return false, fmt.Errorf("the cluster has control planes on %d machines, and all of them would have to start with the keys at once: run bonsai down on the others, enable the encryption, and join them again",
			len(c.Peers))
	}
	if !was.EncryptSecrets {
		if err := encryption.Enable(c.Layout(), time.Now()); err != nil {
			return false, err
		}
	}
	if err := datadir.Save(c); err != nil {
		return false, err
	}
	for _, server := range apiServers(c) {
		if hash, err := server.loaded(ctx, c); err != nil || hash == "" {
			restart = true
		}
	}
	if err := checkNotServed(c, ""); restart && err != nil {
		return false, fmt.Errorf("%w. Then run %s", err, encryption.Command(c.Layout(), "rotate"))
	}
	return restart, nil
}

// loadRunning returns the cluster of this machine, the cluster's first, which must run.
func loadRunning(ctx context.Context, dataDir string) (plan.Config, error) {
	c, err := datadir.LoadFirst(dataDir)
	if err == nil && (paused(c) || !running(ctx, c)) {
		err = notRunning(c)
	}
	return c, err
}

// checkKeys returns an error if the keys of the API servers are not this command's to change, or their Secrets not
// where it looks for them.
func checkKeys(c plan.Config) error {
	if file, given := componentflags.OwnEncryption(c.ComponentFlags); given {
		return fmt.Errorf("the API servers encrypt by a file of yours (kube-apiserver --encryption-provider-config=%s), which this command does not change (docs/guides/encryption.md says how)",
			file)
	}
	if !componentflags.EncryptsSecrets(c.EncryptSecrets, c.ComponentFlags) {
		return fmt.Errorf("the cluster's Secrets are not encrypted (%s)", encryption.Command(c.Layout(), "enable"))
	}
	if flag, given := componentflags.OwnEtcd(c.ComponentFlags); given {
		return fmt.Errorf("kube-apiserver --%s: the Secrets may be in another etcd than the cluster's, where this command would not see them",
			flag)
	}
	return nil
}

// RotateEncryption gives the running cluster in dataDir a new key and writes all Secrets by it, or goes on with what an
// earlier call began.
func RotateEncryption(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := loadRunning(ctx, dataDir)
	if err != nil {
		return err
	}
	if err := checkKeys(c); err != nil {
		return err
	}
	if _, err := encryption.Read(c.Layout()); err != nil {
		return err
	}
	one, err := host.TryLock(filepath.Join(c.Layout().Run(), "rotation.lock"))
	if errors.Is(err, host.ErrLocked) {
		return fmt.Errorf("another %s is under way", encryption.Command(c.Layout(), "rotate"))
	}
	if err != nil {
		return err
	}
	defer one.Close()
	// The authorities that wait for other machines have the keys as they were: a control plane that joined with them
	// would not read what is written from now on.
	if err := join.Withdraw(ctx, c); err != nil {
		return err
	}
	etcds, err := etcd.Of(c)
	if err != nil {
		return err
	}
	secrets, err := client.Core(c)
	if err != nil {
		return err
	}
	began, printer := time.Now(), steps.NewPrinter(out)
	r := encryption.Rotation{Layout: c.Layout(), Now: time.Now, Report: printer.Run,
		Cluster: &keyed{dataDir: dataDir, etcds: etcds, secrets: secrets}}
	if err := r.Run(ctx); err != nil {
		return err
	}
	if err := join.Withdraw(ctx, c); err != nil {
		return err
	}
	keys, err := encryption.Read(c.Layout())
	if err == nil {
		fmt.Fprintf(out, "All Secrets are encrypted by %s, in %.2f s.\n", keys[0].Name, time.Since(began).Seconds())
	}
	return err
}

// keyed is a running cluster for a rotation of its keys.
type keyed struct {
	dataDir string
	etcds   []etcd.API
	secrets *apiclient.Client
}

// Lock implements encryption.Cluster.
func (k *keyed) Lock(ctx context.Context) (io.Closer, error) { return machine.Lock(ctx) }

// AwaitLoaded implements encryption.Cluster. It loads the cluster each time: control planes of other machines may have
// come.
func (k *keyed) AwaitLoaded(ctx context.Context, hash string) error {
	c, err := loadRunning(ctx, k.dataDir)
	if err != nil {
		return err
	}
	if len(others(c)) > 0 {
		if err := join.PublishKeys(ctx, c); err != nil {
			return err
		}
	}
	servers := apiServers(c)
	members, err := etcd.Count(ctx, k.etcds)
	if err != nil {
		return err
	}
	if members != len(servers) {
		return fmt.Errorf("etcd has %d members and %d control planes are known: a machine is joining, or is gone (bonsai status)",
			members, len(servers))
	}
	ctx, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	for _, server := range servers {
		last := error(nil)
		err := host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
			now, err := server.loaded(ctx, c)
			if last = err; err == nil && now != hash {
				last = errors.New("it has another file: its log says why (it must follow the file: --encryption-provider-config-automatic-reload)")
			}
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait until %s has loaded %s: %w", server.name, c.Layout().Encryption(),
				errors.Join(err, last))
		}
	}
	return nil
}

// Settle implements encryption.Cluster.
func (k *keyed) Settle(ctx context.Context) error {
	select {
	case <-time.After(settleFor):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// secretsPrefix is where the cluster's Secrets are in etcd.
func secretsPrefix(c plan.Config) string {
	root, given := c.ComponentFlags["kube-apiserver"]["etcd-prefix"]
	if !given {
		root = "/registry"
	}
	return "/" + strings.Trim(root, "/") + "/secrets/"
}

// Stored implements encryption.Cluster.
func (k *keyed) Stored(ctx context.Context) (map[encryption.Holder]int, error) {
	c, err := datadir.Load(k.dataDir)
	if err != nil {
		return nil, err
	}
	return countSecrets(ctx, c, k.etcds)
}

// countSecrets counts the Secrets in etcd by what they are encrypted by.
func countSecrets(ctx context.Context, c plan.Config, etcds []etcd.API) (map[encryption.Holder]int, error) {
	stored := map[encryption.Holder]int{}
	err := etcd.Each(ctx, etcds, secretsPrefix(c), func(_ string, value []byte) error {
		stored[encryption.HolderOf(value)]++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the Secrets in etcd: %w", err)
	}
	return stored, nil
}

// Rewrite implements encryption.Cluster. An update that changes nothing is stored again by the API server if the value
// is not by its first key. It is an empty patch, so no writer's change is lost, and none is in its way.
func (k *keyed) Rewrite(ctx context.Context, by encryption.Holder) error {
	c, err := datadir.Load(k.dataDir)
	if err != nil {
		return err
	}
	prefix, secrets := secretsPrefix(c), core.Secrets(k.secrets)
	return etcd.Each(ctx, k.etcds, prefix, func(key string, value []byte) error {
		namespace, name, ok := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		if encryption.HolderOf(value) == by || !ok {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, rewritePatience)
		defer cancel()
		err := client.ThroughRestarts(ctx, func() error {
			return secrets.SendPatch(ctx, namespace, name, types.MergePatchType, []byte("{}"))
		})
		if err != nil && !apierrors.IsNotFound(err) { // somebody has removed it
			return fmt.Errorf("write the Secret %s of %s again: %w", name, namespace, err)
		}
		return nil
	})
}

// loaded returns the hash of the keys that the API server has loaded, "" if it has no file.
func (s apiServer) loaded(ctx context.Context, c plan.Config) (string, error) {
	api, err := client.CoreAt(c, s.url)
	if err != nil {
		return "", err
	}
	defer api.HTTP().CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 5*client.Timeout)
	defer cancel()
	metrics, err := api.Document(ctx, "/metrics", "text/plain")
	if err != nil {
		return "", fmt.Errorf("ask %s for its metrics: %w", s.name, err)
	}
	return encryption.Loaded(metrics), nil
}

// PrintEncryption prints what the Secrets of the cluster in dataDir are encrypted by, and its keys.
func PrintEncryption(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	l := c.Layout()
	keys, err := encryption.Read(l)
	file, own := componentflags.OwnEncryption(c.ComponentFlags)
	var lost error // the table shows what there is all the same
	switch {
	case own:
		fmt.Fprintf(out, "The API servers encrypt by a file of yours, %s.\n", file)
	case c.EncryptSecrets && errors.Is(err, fs.ErrNotExist):
		lost = err
	case c.EncryptSecrets:
		fmt.Fprintf(out, "Secrets are encrypted by %s with the first key of %s.\n", encryption.Provider, l.Encryption())
	default:
		fmt.Fprintf(out, "Secrets are not encrypted (%s).\n", encryption.Command(l, "enable"))
	}
	if encryption.IsRotating(l) {
		fmt.Fprintf(out, "A change of the key is not finished (%s).\n", encryption.Command(l, "rotate"))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !own {
		return err
	}
	kept, err := encryption.Kept(l)
	if err != nil {
		return err
	}
	needed, err := encryption.NeededBy(l)
	if err != nil {
		return err
	}
	var stored map[encryption.Holder]int
	if !paused(c) && running(ctx, c) {
		etcds, err := etcd.Of(c)
		if err != nil {
			return err
		}
		if stored, err = countSecrets(ctx, c, etcds); err != nil {
			return err
		}
	}
	inForce := componentflags.EncryptsSecrets(c.EncryptSecrets, c.ComponentFlags)
	return errors.Join(printKeys(out, keyRows(keys, kept, needed, stored, inForce)), lost)
}

// keyRow is a line of what PrintEncryption prints.
type keyRow struct {
	holder encryption.Holder
	count  int // of Secrets; -1: nobody counted
	use    string
}

// keyRows lists the keys of a cluster, then what else Secrets are encrypted by. stored is nil if nobody counted.
func keyRows(keys, kept []encryption.Key, needed map[string][]string, stored map[encryption.Holder]int,
	inForce bool) []keyRow {
	var rows []keyRow
	add := func(holder encryption.Holder, use ...string) {
		count := -1
		if stored != nil {
			count = stored[holder]
		}
		rows = append(rows, keyRow{holder, count, strings.Join(use, ", ")})
	}
	for i, k := range keys {
		var uses []string
		switch {
		case !inForce:
			uses = []string{"not in force"}
		case i == 0:
			uses = []string{"writes and reads"}
		default:
			uses = []string{"reads"}
		}
		if in := needed[k.Name]; len(in) > 0 {
			uses = append(uses, "snapshots "+strings.Join(in, " "))
		}
		add(encryption.Holder{Provider: encryption.Provider, Key: k.Name}, uses...)
	}
	for _, k := range kept {
		holder := encryption.Holder{Provider: encryption.Provider, Key: k.Name}
		if slices.ContainsFunc(rows, func(r keyRow) bool { return r.holder == holder }) {
			continue
		}
		use := "nothing: the next rotation forgets it"
		if in := needed[k.Name]; len(in) > 0 {
			use = "kept for snapshots " + strings.Join(in, " ")
		}
		add(holder, use)
	}
	for _, holder := range encryption.Holders(stored) {
		if slices.ContainsFunc(rows, func(r keyRow) bool { return r.holder == holder }) {
			continue
		}
		use := "not a key of this cluster's file"
		if holder == (encryption.Holder{}) {
			use = "not encrypted"
		}
		add(holder, use)
	}
	return rows
}

// printKeys prints a table.
func printKeys(out io.Writer, rows []keyRow) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tKEY\tSECRETS\tUSE")
	for _, r := range rows {
		provider, name, count := r.holder.Provider, r.holder.Key, fmt.Sprint(r.count)
		if r.holder == (encryption.Holder{}) {
			provider, name = "identity", "-"
		}
		if r.count < 0 {
			count = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", provider, name, count, r.use)
	}
	return w.Flush()
}
