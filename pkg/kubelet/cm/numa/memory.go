package numa

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// readMemory tells how much memory, and which huge pages, each NUMA node has. A system that knows no nodes is one, with
// all that there is. root is "/" outside of tests. The kubelet reads it once at its start: memory that is plugged in
// later does not count.
func readMemory(root string) (map[int]map[corev1.ResourceName]uint64, error) {
	dir := filepath.Join(root, "sys/devices/system/node")
	online, err := set(filepath.Join(dir, "online"))
	if err != nil {
		return nil, err
	}
	out := map[int]map[corev1.ResourceName]uint64{}
	if online.IsEmpty() {
		out[0], err = memoryOf(filepath.Join(root, "proc/meminfo"), filepath.Join(root, "sys/kernel/mm/hugepages"))
		return out, err
	}
	for _, id := range online.List() {
		at := filepath.Join(dir, fmt.Sprintf("node%d", id))
		if out[id], err = memoryOf(filepath.Join(at, "meminfo"), filepath.Join(at, "hugepages")); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// memoryOf reads a file meminfo and a directory of huge pages, hugepages-<kB>kB/nr_hugepages. A node's file begins its
// lines with "Node 0 ", and /proc/meminfo does not, hence the search within the line. Sizes are parsed into 43 bits, so
// that the shift to bytes does not overflow an int64 quantity.
func memoryOf(info, pages string) (map[corev1.ResourceName]uint64, error) {
	out := map[corev1.ResourceName]uint64{}
	for _, l := range strings.Split(line(info), "\n") {
		_, text, found := strings.Cut(l, "MemTotal:")
		if !found {
			continue
		}
		kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", info, err)
		}
		out[corev1.ResourceMemory] = kb << 10
	}
	sizes, err := filepath.Glob(filepath.Join(pages, "hugepages-*kB"))
	if err != nil {
		return nil, fmt.Errorf("list the sizes of huge pages: %w", err)
	}
	for _, at := range sizes {
		kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(at), "hugepages-"), "kB"), 10,
			43)
		if err != nil {
			return nil, fmt.Errorf("read the sizes of huge pages: %w", err)
		}
		if _, err := os.Stat(filepath.Join(at, "nr_hugepages")); err != nil {
			continue
		}
		count, err := number(filepath.Join(at, "nr_hugepages"))
		if err != nil {
			return nil, err
		}
		size := resource.NewQuantity(int64(kb<<10), resource.BinarySI)
		out[corev1.ResourceName(corev1.ResourceHugePagesPrefix+size.String())] = uint64(count) * (kb << 10)
	}
	return out, nil
}
