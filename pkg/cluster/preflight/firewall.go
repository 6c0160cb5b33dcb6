package preflight

import "fmt"

// firewall is about what else on the machine decides about the packets of nodes and pods. A packet must pass every
// table, so what another one refuses, a rule of Bonsai's own table cannot allow:
//
//   - chains of iptables that refuse by default, as ufw and Docker set them: `bonsai up` adds rules for its link;
//   - other chains of nftables that drop by default: only their owner knows where a rule belongs;
//   - firewalld, whose table nobody else may change: the link must be in a zone that accepts;
//   - rp_filter: the routes to pods lead over the link by which their packets come, so even the strict one lets them
//     through.
func firewall(m Machine, n Needs) []Finding {
	const subject = "firewall"
	w := m.Firewall
	var found []Finding
	if w.Firewalld && w.ZoneTarget != "ACCEPT" {
		found = append(found, Finding{Missing, subject, fmt.Sprintf(
			"firewalld refuses the packets of nodes and pods: the link %s must be in a zone that accepts them", n.Link),
			fmt.Sprintf("firewall-cmd --permanent --zone=trusted --add-interface=%s && firewall-cmd --reload", n.Link)})
	}
	for _, c := range w.Drops {
		if c.Hook == "forward" && !n.Egress {
			continue
		}
		need := "the API server"
		if c.Hook == "forward" {
			need = "what is beyond this machine"
		}
		found = append(found, Finding{Warning, subject, fmt.Sprintf(
			"the chain %s %s %s drops by default: nodes may not reach %s", c.Family, c.Table, c.Name, need),
			fmt.Sprintf("nft insert rule %s %s %s iifname %s accept", c.Family, c.Table, c.Name, n.Link)})
	}
	if w.Input || w.Forward {
		found = append(found, Finding{Level: OK, Subject: subject,
			Text: "iptables refuses by default, as ufw and Docker set it: `bonsai up` adds rules for its link"})
	}
	if n.Others && (w.Input || w.Firewalld) {
		found = append(found, Finding{Level: Note, Subject: subject, Text: fmt.Sprintf(
			"the firewall decides what other machines reach here: nodes need TCP %d and 10250, machines with control planes also %d and %d",
			n.APIPort, n.EtcdClientPort, n.EtcdPeerPort)})
	}
	if len(found) == 0 {
		found = append(found, Finding{Level: OK, Subject: subject, Text: "nothing else refuses the cluster's packets"})
	}
	return found
}
