package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/deploy/addons"
	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/clusterfile"
	"bonsai/pkg/cluster/plan/localimage"
	"bonsai/pkg/cluster/plan/programs"
)

// upFlags are the flags that describe a cluster. Only those on the command line count: the others keep what is.
type upFlags struct {
	file, mirror string
	family       string
	programs     string
	advertise    string
	endpoint     string
	ports        []string
	addons       []string
	nodes, port  int
	planes       int
	egress       bool
	encrypt      bool
	traces       bool
	wait         time.Duration
	// kubeconfigMode is octal.
	kubeconfigMode string
}

func upCommand(chosen *chosen) *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster and wait until it is ready",
		Long: `Start a cluster and wait until its nodes are Ready and its DNS answers. An existing cluster, running or stopped, keeps every setting
that you do not pass. Labels, taints, published ports and add-ons change while it runs.
If you do not choose subnets and ports, a new cluster takes the first that are free on this machine.`,
		Example: `  bonsai up
  bonsai up --name dev --nodes 3
  bonsai up --name ha --control-planes 3
  bonsai up --port 8080:30080
  bonsai up --ip-family dual
  bonsai up --addons metrics-server
  bonsai up --advertise-address 192.0.2.1
  bonsai config print-default > dev.yaml; bonsai up --name dev --config dev.yaml`,
		Args: daemon.NoArgs,
	}
	f.add(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		config, err := f.config(cmd, chosen, filepath.Dir(self), cluster.FinishRestore)
		if err != nil {
			return err
		}
		return up(cmd, chosen.home, config, self, f.wait)
	}
	return c
}

const programsUsage = "which containerd, runc, nft and so on run: bundled, those of an installed release, or machine"

// parsePrograms returns the value of --programs as a configuration has it.
func parsePrograms(value string) (string, error) {
	if err := programs.Check(value); err != nil {
		return "", fmt.Errorf("--programs: %w", err)
	}
	if value == programs.Bundled {
		return "", nil
	}
	return value, nil
}

// add adds the flags of up to a command.
func (f *upFlags) add(c *cobra.Command) {
	f.describe(c)
	waitFlag(c, &f.wait, "the cluster")
}

// describe adds the flags that describe a cluster to a command.
func (f *upFlags) describe(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "config", "",
		"file that describes the cluster (bonsai config print-default), - for standard input; flags come after it")
	c.Flags().IntVar(&f.nodes, "nodes", 1, "number of nodes (1 to 9)")
	c.Flags().IntVar(&f.planes, "control-planes", 1,
		"number of control planes: 1, or 3 behind a balancer; any one of these may fail")
	c.Flags().BoolVar(&f.egress, "egress", true, "let nodes and pods reach what this machine reaches (masqueraded)")
	c.Flags().BoolVar(&f.encrypt, "encrypt-secrets", true,
		"encrypt Secrets in etcd, in a new cluster (bonsai encryption enable: in an existing one)")
	c.Flags().BoolVar(&f.traces, "traces", true,
		"keep the newest traces of the cluster (kubectl get traces), on its first machine")
	c.Flags().StringVar(&f.family, "ip-family", "ipv4", "addresses of nodes, pods and Services: ipv4, ipv6 or dual")
	c.Flags().StringVar(&f.programs, "programs", programs.Bundled, programsUsage)
	c.Flags().StringVar(&f.advertise, "advertise-address", "",
		"an address of this machine by which other machines reach the API server, to join (bonsai join)")
	c.Flags().StringVar(&f.endpoint, "control-plane-endpoint", "",
		"HOST:PORT of your own load balancer or DNS name in front of the API servers of several machines")
	c.Flags().IntVar(&f.port, "api-port", 0, "port of the API server (default: 6443, or the next that is free)")
	c.Flags().StringVar(&f.mirror, "registry-mirror", "",
		"URL of a registry, reachable from the nodes, that stands for every registry")
	c.Flags().StringArrayVar(&f.ports, "port", nil,
		"publish a node port on this machine, as [ADDRESS:]HOSTPORT:NODEPORT[/udp]; can be given several times")
	c.Flags().StringSliceVar(&f.addons, "addons", nil,
		"add-ons to switch on, or off with NAME=false (bonsai config print-default lists them)")
	c.Flags().StringVar(&f.kubeconfigMode, "kubeconfig-mode", "0600",
		"mode of your kubeconfig, which contains the administrator's key")
}

// up starts the cluster and says how to use it. `up`, `start` and `snapshot restore` share it.
func up(cmd *cobra.Command, home machine.Home, config plan.Config, self string, patience time.Duration) error {
	if err := usePrograms(config.Programs); err != nil {
		return err
	}
	ctx, cancel := host.WithPatience(cmd.Context(), patience)
	defer cancel()
	began := time.Now()
	config, started, err := cluster.Up(ctx, home, config, self, cmd.OutOrStdout())
	if err != nil {
		return err
	}
	if !started {
		fmt.Fprintf(cmd.OutOrStdout(), "The cluster in %s is already up: nothing changed.\n", config.DataDir)
		return nil
	}
	if config.Joined != nil {
		return sayJoined(cmd, config)
	}
	fmt.Fprintf(cmd.OutOrStdout(), upMessage, time.Since(began).Seconds(), config.Context(), filepath.Dir(self),
		localimage.Busybox)
	if machine.HasNoResolver(config) {
		fmt.Fprint(cmd.OutOrStdout(), noResolversMessage)
	}
	return nil
}

const upMessage = `Ready in %.2f s. The context %q is in your kubeconfig. Try:
  export PATH=%s:$PATH
  kubectl get pods -A -o wide
  kubectl run -it --rm try --image=%s -- sh
`

const noResolversMessage = `/etc/resolv.conf names no DNS server: pods resolve the names of the cluster alone, and others as soon as there is one.
`

// config is the cluster that is wanted: the one that is there, or the default; then the file, which says all; then the
// flags. It reads the configuration without the machine's lock. cluster.Up compares the result with the configuration
// under the lock: what another command has changed in between counts as a difference. Once the data directory is
// chosen, and before it reads there, it calls prepare.
func (f upFlags) config(cmd *cobra.Command, chosen *chosen, binDir string,
	prepare func(ctx context.Context, dataDir string) error) (plan.Config, error) {
	data, err := f.read(cmd.InOrStdin())
	if err != nil {
		return plan.Config{}, err
	}
	if f.file != "" {
		if err := chosen.follow(data); err != nil {
			return plan.Config{}, fmt.Errorf("--config %s: %w", f.file, err)
		}
	}
	if err := prepare(cmd.Context(), chosen.dataDir); err != nil {
		return plan.Config{}, err
	}
	config, err := datadir.Load(chosen.dataDir)
	if errors.Is(err, os.ErrNotExist) {
		config, err = undecided(chosen), nil
	}
	if err != nil {
		return config, fmt.Errorf(
			"%w (repair the file, or delete the cluster with everything in it: bonsai down --data-dir %s)", err,
			chosen.dataDir)
	}
	if config.Joined != nil {
		if err := refuseForJoined(cmd, config); err != nil {
			return config, err
		}
	}
	config.BinDir, config.Addons = binDir, addons.Files
	if f.file != "" {
		if config, err = clusterfile.Read(data, config); err != nil {
			return config, fmt.Errorf("--config %s: %w", f.file, err)
		}
	}
	given := cmd.Flags().Changed
	if given("name") {
		config.Name = chosen.name
	}
	if given("nodes") {
		if config, err = config.WithNodes(f.nodes); err != nil {
			return config, fmt.Errorf("--nodes: %w", err)
		}
	}
	if given("control-planes") {
		config.ControlPlanes = f.planes
	}
	if given("kubeconfig-mode") {
		if config.KubeconfigMode, err = clusterfile.ParseMode(f.kubeconfigMode); err != nil {
			return config, fmt.Errorf("--kubeconfig-mode: %w", err)
		}
	}
	if given("egress") {
		config.Egress = f.egress
	}
	if given("encrypt-secrets") {
		config.EncryptSecrets = f.encrypt
	}
	if given("traces") {
		config.NoTraces = !f.traces
	}
	if given("ip-family") {
		if config.IPFamily, err = plan.ParseIPFamily(f.family); err != nil {
			return config, fmt.Errorf("--ip-family: %w", err)
		}
	}
	if given("programs") {
		if config.Programs, err = parsePrograms(f.programs); err != nil {
			return config, err
		}
	}
	if given("advertise-address") {
		if config.AdvertiseAddress, err = netip.ParseAddr(f.advertise); err != nil && f.advertise != "" {
			return config, fmt.Errorf("--advertise-address: %w", err)
		}
	}
	if given("control-plane-endpoint") {
		config.ControlPlaneEndpoint = f.endpoint
	}
	if given("api-port") {
		config.Ports.API = f.port
	}
	// The flag replaces the whole list, whereas --addons changes single entries.
	if given("port") {
		config.PortMappings = nil
	}
	for _, text := range f.ports {
		mapping, err := plan.ParsePortMapping(text)
		if err != nil {
			return config, fmt.Errorf("--port: %w", err)
		}
		config.PortMappings = append(config.PortMappings, mapping)
	}
	if config, err = config.ParseAddons(f.addons); err != nil {
		return config, fmt.Errorf("--addons: %w", err)
	}
	if given("registry-mirror") {
		config.Mirrors = []plan.Mirror{{Registry: plan.EveryRegistry, URL: f.mirror}}
	}
	return config, nil
}

// follow takes the cluster's name from the file, and with it the place of its data, where no flag says them.
func (c *chosen) follow(data []byte) error {
	read, err := clusterfile.Read(data, plan.Config{})
	if err != nil || read.Name == "" || c.named {
		return err
	}
	c.name = read.Name
	if !c.placed {
		c.dataDir, err = datadir.Resolve(c.home.DataDir(c.name))
	}
	return err
}

// refuseForJoined refuses the flags of up that say what a cluster is to be, on a machine that has joined one: only the
// machine with the control plane can change it, and here they would change nothing or a node that nobody asked for.
func refuseForJoined(cmd *cobra.Command, config plan.Config) error {
	var errs []error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"name", "data-dir", "programs", "wait"}, flag.Name) {
			errs = append(errs, fmt.Errorf("--%s: %w", flag.Name, datadir.CheckFirst(config)))
		}
	})
	return errors.Join(errs...)
}

// undecided is a new cluster whose addresses and ports are still to be chosen.
func undecided(chosen *chosen) plan.Config {
	c := plan.Default(chosen.dataDir, "")
	c.Name, c.Ports = chosen.name, plan.Ports{}
	c.NodeSubnet, c.PodSubnet, c.ServiceSubnet = netip.Prefix{}, netip.Prefix{}, netip.Prefix{}
	return c
}

// read reads the configuration file, if there is one.
func (f upFlags) read(stdin io.Reader) ([]byte, error) {
	const most = 1 << 20 // bytes
	in := stdin
	switch f.file {
	case "":
		return nil, nil
	case "-":
	default:
		file, err := os.Open(f.file)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", f.file, err)
	}
	return data, nil
}

func downCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop a cluster and remove everything it made",
		Example: `  bonsai down
  bonsai down --name dev
  bonsai down --all`,
		Args: daemon.NoArgs,
	}
	keep := c.Flags().Bool("keep-data", false, "keep the data directory, so that up continues with the same cluster")
	all := c.Flags().Bool("all", false, "remove every cluster of this machine")
	force := c.Flags().Bool("force", false,
		"remove the cluster here even if the control planes on other machines cannot remove this machine's etcd member")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if *all && (cmd.Flags().Changed("name") || cmd.Flags().Changed("data-dir")) {
			return errors.New("--all is every cluster: --name and --data-dir say which one")
		}
		if *all {
			return downAll(cmd, chosen.home, *keep, *force)
		}
		found, err := cluster.Down(cmd.Context(), chosen.dataDir, *keep, *force, cmd.OutOrStdout())
		if err == nil && !found {
			fmt.Fprintf(cmd.OutOrStdout(), "No cluster in %s: nothing to do.\n", chosen.dataDir)
		}
		return err
	}
	return c
}

// downAll ends every cluster, even if one of them makes trouble. Each cluster takes the machine's lock for itself, so a
// start may come in between. An interrupted command does not touch the clusters that it has not reached.
func downAll(cmd *cobra.Command, home machine.Home, keep, force bool) error {
	clusters, err := cluster.Clusters(home)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "No clusters: nothing to do.")
	}
	var errs []error
	for _, c := range clusters {
		if ctx := cmd.Context(); ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("the cluster in %s and those after it stay: %w", c.DataDir,
				context.Cause(ctx)))
			break
		}
		fmt.Fprintf(cmd.OutOrStdout(), "The cluster in %s:\n", c.DataDir)
		if _, err := cluster.Down(cmd.Context(), c.DataDir, keep, force, cmd.OutOrStdout()); err != nil {
			errs = append(errs, fmt.Errorf("the cluster in %s: %w", c.DataDir, err))
		}
	}
	return errors.Join(errs...)
}

func listCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the clusters of this machine",
		Example: "  bonsai list",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.PrintList(cmd.Context(), chosen.home, cmd.OutOrStdout())
		},
	}
}

func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Show configuration files of clusters",
		Annotations: map[string]string{anyone: ""}}
	c.AddCommand(&cobra.Command{
		Use:     "print-default",
		Short:   "Print a commented file for `bonsai up --config` with all defaults",
		Example: "  bonsai config print-default > cluster.yaml",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), clusterfile.Default)
			return err
		},
	})
	return c
}
