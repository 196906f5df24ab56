"""kube-scheduler's verbs over HTTP, with health: decode, ask `verdict`, encode."""
