package metrics

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/memoryqos"
	"bonsai/pkg/kubelet/runtime"
)

// gathered are the registry's figures by name and label values; of a histogram, how much was observed.
func gathered(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			name := []string{f.GetName()}
			for _, l := range x.GetLabel() {
				name = append(name, l.GetValue())
			}
			got[strings.Join(name, " ")] = x.GetCounter().GetValue() + x.GetGauge().GetValue() +
				float64(x.GetHistogram().GetSampleCount())
		}
	}
	return got
}

// The names and labels are those of Kubernetes' metrics reference.
func TestMetricsHaveUpstreamsNames(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	m := New(r)
	in := func(states ...runtime.State) *runtime.PodStatus {
		p := &runtime.PodStatus{Sandboxes: []runtime.Sandbox{{Ready: true}}}
		for _, s := range states {
			p.Containers = append(p.Containers, runtime.Container{State: s})
		}
		return p
	}
	ended := in(runtime.StateExited, runtime.StateExited)
	ended.Sandboxes[0].Ready = false
	m.Relisted(time.Unix(100, 0), time.Second,
		[]*runtime.PodStatus{in(runtime.StateRunning, runtime.StateExited), in(runtime.StateCreated), ended}, nil)
	m.StartedPod(&corev1.Pod{}, "", time.Second, nil)
	m.StartedPod(&corev1.Pod{Spec: corev1.PodSpec{HostUsers: new(false)}}, "kata", time.Second,
		errors.New("no network"))
	m.WorkerStarted(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}, {}}}}, time.Second)
	m.WorkerStep("create", time.Second)
	m.StatusSynced(time.Second)
	m.CgroupWork("update", time.Second)
	m.ImagePulled(11<<20, time.Second)
	m.ImagePulled(1<<40, time.Second)
	m.VolumeWork("empty-dir", "volume_mount", time.Second, nil)
	m.VolumeWork("csi", "map_volume", time.Second, errors.New("not attached"))
	m.VolumeThere("csi", time.Second)
	m.VolumeMeasured("statfs", time.Second)
	m.VolumesSwept(3, 2)
	m.EvictionAge("memory.available", time.Second)
	m.Orphaned()
	m.ImageEnsured(corev1.PullIfNotPresent, new(true), new(false))
	m.ImageEnsured(corev1.PullAlways, nil, nil)
	m.ImageChecked("mustAuthenticate")
	m.ImageVolumeAsked()
	m.ImageVolumesMounted(2, true)
	m.ImageVolumesMounted(3, false)
	m.StartedContainer(runtime.Regular, "")
	m.StartedContainer(runtime.Regular, "ErrImagePull")
	m.StartedContainer(runtime.Init, "")
	m.StartedContainer(runtime.Ephemeral, "")
	m.HookFellBack()
	m.Terminated(runtime.Init, 139)
	m.MemoryProtected(memoryqos.Protection{Min: 5, Low: 7})
	m.PodAdmitted(&corev1.Pod{})
	m.PodsAsked("get", "NotFound")
	m.PodRejected("SysctlForbidden")
	m.Preempted(corev1.ResourceMemory)
	m.Evicted("emptydirfs.limit")
	resize(m)
	m.RestartedPod(true)
	m.RestartedPod(false)
	m.ImageRemoved("space")
	m.PodRunning(time.Second, time.Minute, time.Second)
	m.PodRunning(time.Second, 0, time.Second)
	m.ShutdownBegan(time.Unix(7, 0))
	m.ShutdownOver(time.Unix(8, 0))
	m.Called("run_podsandbox", time.Second, nil)
	m.Called("run_podsandbox", time.Second, errors.New("no network"))
	m.PluginRegistered("example.com/foo")
	m.DevicesAllocated("example.com/foo", time.Second)
	m.TopologyAdmitted(time.Millisecond, false)
	m.TopologyAdmitted(time.Millisecond, true)
	m.PodResourcesAsked("list", false)
	m.CPUsPinned(nil)
	m.CPUsPinned(errors.New("none left"))
	m.CPUs(3, 1)
	m.Began(time.Unix(10, 0), time.Unix(20, 0))
	m.Registering(time.Unix(21, 0))
	m.Registered(time.Unix(23, 0))
	m.Ready(time.Unix(26, 0))
	m.MemoryPinned(nil)
	m.MemoryPinned(errors.New("none left"))
	m.DRAOperation("PrepareResources", time.Second, nil)
	m.DRACall("drv", "/x", "OK", time.Second)
	m.DRAClaims(map[string]int{"gone": 1})
	m.DRAClaims(map[string]int{"<any>": 2, "drv": 1})
	m.PodResourcesAsked("get", true)
	want := map[string]float64{
		"kubelet_terminated_containers_total init_container 139":                                1,
		"kubelet_lifecycle_handler_http_fallbacks_total":                                        1,
		"volume_operation_total_seconds overall_volume_mount kubernetes.io/csi":                 1,
		"kubelet_volume_metric_collection_duration_seconds statfs":                              1,
		"kubelet_orphan_pod_cleaned_volumes":                                                    3,
		"kubelet_orphan_pod_cleaned_volumes_errors":                                             2,
		"kubelet_eviction_stats_age_seconds memory.available":                                   1,
		"kubelet_orphaned_runtime_pods_total":                                                   1,
		"kubelet_image_manager_ensure_image_requests_total true ifnotpresent false":             1,
		"kubelet_image_manager_ensure_image_requests_total unknown always unknown":              1,
		"kubelet_imagemanager_image_mustpull_checks_total mustAuthenticate":                     1,
		"kubelet_image_volume_requested_total":                                                  1,
		"kubelet_image_volume_mounted_succeed_total":                                            2,
		"kubelet_image_volume_mounted_errors_total":                                             3,
		"kubelet_node_startup_pre_kubelet_duration_seconds":                                     10,
		"kubelet_node_startup_pre_registration_duration_seconds":                                1,
		"kubelet_node_startup_registration_duration_seconds":                                    2,
		"kubelet_node_startup_post_registration_duration_seconds":                               3,
		"kubelet_node_startup_duration_seconds":                                                 16,
		"kubelet_memory_qos_node_memory_low_bytes":                                              7,
		"kubelet_memory_qos_node_memory_min_bytes":                                              5,
		"kubelet_pod_level_resources_admission_total  besteffort":                               1,
		"kubelet_pod_requests_total v1alpha1 NotFound":                                          1,
		"kubelet_pod_requests_get_total v1alpha1 NotFound":                                      1,
		"kubelet_pod_watch_events_dropped_total":                                                0,
		"kubelet_admission_rejections_total SysctlForbidden":                                    1,
		"kubelet_cpu_manager_pinning_requests_total":                                            2,
		"kubelet_memory_manager_pinning_requests_total":                                         2,
		"kubelet_memory_manager_pinning_errors_total":                                           1,
		"kubelet_cpu_manager_pinning_errors_total":                                              1,
		"kubelet_cpu_manager_shared_pool_size_millicores":                                       3000,
		"kubelet_cpu_manager_exclusive_cpu_allocation_count":                                    1,
		"dra_operations_duration_seconds false PrepareResources":                                1,
		"dra_grpc_operations_duration_seconds drv OK /x":                                        1,
		"dra_resource_claims_in_use <any>":                                                      2,
		"dra_resource_claims_in_use drv":                                                        1,
		"kubelet_pod_resources_endpoint_requests_total v1":                                      2,
		"kubelet_pod_resources_endpoint_requests_list v1":                                       1,
		"kubelet_pod_resources_endpoint_requests_get v1":                                        1,
		"kubelet_pod_resources_endpoint_errors_get v1":                                          1,
		"kubelet_device_plugin_registration_total example.com/foo":                              1,
		"kubelet_device_plugin_alloc_duration_seconds example.com/foo":                          1,
		"kubelet_topology_manager_admission_requests_total":                                     2,
		"kubelet_topology_manager_admission_errors_total":                                       1,
		"kubelet_topology_manager_admission_duration_ms":                                        2,
		"kubelet_image_garbage_collected_total space":                                           1,
		"kubelet_graceful_shutdown_start_time_seconds":                                          7,
		"kubelet_graceful_shutdown_end_time_seconds":                                            8,
		"kubelet_pod_start_duration_seconds":                                                    2,
		"kubelet_pod_start_sli_duration_seconds":                                                1,
		"kubelet_pod_start_total_duration_seconds":                                              1,
		"kubelet_run_podsandbox_duration_seconds ":                                              1,
		"kubelet_run_podsandbox_duration_seconds kata":                                          1,
		"kubelet_run_podsandbox_errors_total kata":                                              1,
		"kubelet_started_user_namespaced_pods_total":                                            1,
		"kubelet_started_user_namespaced_pods_errors_total":                                     1,
		"kubelet_pod_worker_start_duration_seconds":                                             1,
		"kubelet_containers_per_pod_count":                                                      1,
		"kubelet_pod_worker_duration_seconds create":                                            1,
		"kubelet_pod_status_sync_duration_seconds":                                              1,
		"kubelet_cgroup_manager_duration_seconds update":                                        1,
		"kubelet_image_pull_duration_seconds 10MB-100MB":                                        1,
		"kubelet_image_pull_duration_seconds GT100GB":                                           1,
		"storage_operation_duration_seconds false volume_mount success kubernetes.io/empty-dir": 1,
		"storage_operation_duration_seconds false map_volume fail-unknown kubernetes.io/csi":    1,
		"kubelet_pleg_relist_interval_seconds":                                                  0,
		"kubelet_preemptions memory":                                                            1,
		"kubelet_evictions emptydirfs.limit":                                                    1,
		"kubelet_container_requested_resizes_total add limits memory":                           1,
		"kubelet_container_requested_resizes_total remove requests cpu":                         1,
		"kubelet_container_requested_resizes_total increase limits cpu":                         1,
		"kubelet_container_requested_resizes_total decrease requests cpu":                       1,
		"kubelet_pod_infeasible_resizes_total static_pod":                                       1,
		"kubelet_pod_infeasible_resizes_total insufficient_node_allocatable":                    2,
		"kubelet_pod_deferred_accepted_resizes_total pod_resized":                               1,
		"kubelet_pod_pending_resizes medium deferred":                                           1,
		"kubelet_pod_pending_resizes system-critical infeasible":                                1,
		"kubelet_pod_pending_resizes high deferred":                                             1,
		"kubelet_pod_pending_resizes low deferred":                                              1,
		"kubelet_pod_deferred_resize_duration_seconds normal accepted":                          1,
		"kubelet_pod_in_progress_resizes":                                                       1,
		"kubelet_pod_resize_duration_milliseconds true":                                         2,
		"kubelet_pod_resize_duration_milliseconds false":                                        1,
		"kubelet_restarted_pods_total true":                                                     1,
		"kubelet_restarted_pods_total ":                                                         1,
		"kubelet_runtime_operations_total run_podsandbox":                                       2,
		"kubelet_runtime_operations_errors_total run_podsandbox":                                1,
		"kubelet_runtime_operations_duration_seconds run_podsandbox":                            2,
		"kubelet_running_pods":                                                                  2,
		"kubelet_running_containers created":                                                    1,
		"kubelet_running_containers running":                                                    1,
		"kubelet_running_containers exited":                                                     3,
		"kubelet_running_containers unknown":                                                    0,
		"kubelet_pleg_relist_duration_seconds":                                                  1,
		"kubelet_pleg_last_seen_seconds":                                                        100,
		"kubelet_started_pods_total":                                                            2,
		"kubelet_started_pods_errors_total":                                                     1,
		"kubelet_started_containers_total container":                                            2,
		"kubelet_started_containers_total init_container":                                       1,
		"kubelet_started_containers_total ephemeral_container":                                  1,
		"kubelet_started_containers_errors_total ErrImagePull container":                        1,
	}
	if got := gathered(t, r); !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}

	// A list that failed shows nothing new; states that no container is in any more are 0.
	m.Relisted(time.Unix(200, 0), time.Second, nil, errors.New("no answer"))
	want["kubelet_pleg_relist_duration_seconds"], want["kubelet_pleg_relist_interval_seconds"] = 2, 1
	if got := gathered(t, r); !maps.Equal(got, want) {
		t.Errorf("after a failed list: got %v\nwant %v", got, want)
	}
	m.Relisted(time.Unix(300, 0), time.Second, nil, nil)
	if got := gathered(t, r); got["kubelet_running_pods"]+got["kubelet_running_containers exited"]+
		got["kubelet_running_containers running"] != 0 {
		t.Errorf("after all pods have gone: %v", got)
	}

	New(nil).Orphaned() // counts without a registry
}
