// Package queueset shares the seats of one priority level fairly among flows of requests: the algorithm of KEP-1040,
// "Fair Queuing for Server Requests, with equal allocations and serial virtual execution". It is pure: the time is an
// argument, a flow is a hash, and nothing waits.
//
// A request takes seats while it runs (its width). Each flow is dealt a few of the level's queues by its hash (shuffle
// sharding), and a request waits in the least loaded of these. So a flow that floods fills its own queues, and another
// one most likely has a queue of its own.
//
// Which queue is served next is decided by a meter of progress, R: the work that every busy queue would have been given
// by now if all were given the same. It is counted in seat-seconds. A queue's start is the R at which its next request
// would begin if the queue ran its requests one after the other at that pace; what a request really took is added when
// it has ended. The queue whose first request would be over first comes next.
package queueset
