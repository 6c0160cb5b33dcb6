package plan

// PodBridge is the bridge of a node's pods. bonsai-network configures the CNI plug-ins to make it.
const PodBridge = "cni0"
