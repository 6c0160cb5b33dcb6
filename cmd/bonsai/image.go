package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/image"
	"bonsai/pkg/cluster/plan"
)

func imageCommand(chosen *chosen) *cobra.Command {
	group := &cobra.Command{Use: "image",
		Short: "Load, list and remove images on nodes; build the local images"}
	group.AddCommand(&cobra.Command{
		Use:   "load ARCHIVE|IMAGE...",
		Short: "Load images into every node: from archives, or by name from this machine's Docker or containerd",
		Long: `Load images into every node, from archives or by name. Archives are those of docker save or OCI layouts, also gzipped; - is standard
input. An argument that is no file is an image name, which Docker is asked for, then containerd (namespaces default and k8s.io).`,
		Example: "  bonsai image load app:1\n  docker save app:1 | bonsai image load -\n  bonsai image load app.tar other.tar.gz",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stores, err := cluster.Images(chosen.dataDir)
			if err != nil {
				return err
			}
			return stores.Load(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}, &cobra.Command{
		Use:     "list",
		Short:   "List the nodes' images",
		Example: "  bonsai image list",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stores, err := cluster.Images(chosen.dataDir)
			if err != nil {
				return err
			}
			return stores.Print(cmd.Context(), cmd.OutOrStdout())
		},
	})
	remove := &cobra.Command{
		Use:     "rm IMAGE...",
		Short:   "Remove images from every node",
		Example: "  bonsai image rm app:1",
		Args:    cobra.MinimumNArgs(1),
	}
	force := remove.Flags().Bool("force", false, "also images that containers use")
	remove.RunE = func(cmd *cobra.Command, args []string) error {
		stores, err := cluster.Images(chosen.dataDir)
		if err != nil {
			return err
		}
		return stores.Remove(cmd.Context(), args, *force, cmd.OutOrStdout())
	}
	build := &cobra.Command{
		Use:         "build DIRECTORY [IMAGE...]",
		Short:       "Build the archives of the local images from the binaries beside this one: those that every cluster needs, or the named ones",
		Example:     "  bonsai image build bin/images\n  bonsai image build bin/images metrics-server",
		Annotations: map[string]string{anyone: ""},
		Args:        cobra.MinimumNArgs(1),
	}
	from := build.Flags().String("from", "",
		"directory of the binaries, which may be for another architecture (default: that of this program)")
	busybox := build.Flags().String("busybox", "",
		"busybox binary; its shared libraries come along (default: the one in the directory of the binaries)")
	sysroot := build.Flags().String("sysroot", "/",
		"directory below which the shared libraries are, as a cross compiler has them for another architecture")
	build.RunE = func(cmd *cobra.Command, args []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		dir := cmp.Or(*from, filepath.Dir(self))
		*busybox = cmp.Or(*busybox, filepath.Join(dir, "busybox"))
		// busybox itself lists its applets, so that the image's links fit the binary that is at hand. One for another
		// architecture does not run: its build has written the list beside it.
		applets, err := exec.CommandContext(cmd.Context(), *busybox, "--list").Output()
		if errors.Is(err, unix.ENOEXEC) {
			applets, err = os.ReadFile(*busybox + ".links")
		}
		if err != nil {
			return fmt.Errorf("ask %s for its applets: %w", *busybox, err)
		}
		names := args[1:]
		if len(names) == 0 {
			names = plan.DefaultImages()
		}
		recipes, err := image.LocalRecipes(dir, *busybox, *sysroot, strings.Fields(string(applets)))
		if err != nil {
			return err
		}
		for _, name := range names {
			recipe, known := recipes[name]
			if !known {
				return fmt.Errorf("there is no local image %q", name)
			}
			if err := image.WriteRecipe(filepath.Join(args[0], name+".tar"), recipe); err != nil {
				return err
			}
		}
		return nil
	}
	group.AddCommand(remove, build)
	return group
}
