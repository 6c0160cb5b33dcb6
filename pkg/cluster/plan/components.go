package plan

// PodBridge is the bridge of the node's pods, which bonsai-network has the CNI plug-ins make.
const PodBridge = "cni0"

// StepsFlag has a component log what it does for each object (package trace): in a cluster of one machine a story is
// worth a record.
const StepsFlag = "--v=2"
