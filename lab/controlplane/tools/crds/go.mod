module dovetail.dev/tools/crds

go 1.26

// Read by the tests of examples/ for their CustomResourceDefinitions; nothing is built from them.
require (
	github.com/argoproj/argo-workflows/v3 v3.7.3
	github.com/kubeflow/spark-operator/v2 v2.3.0
	github.com/ray-project/kuberay/ray-operator v1.4.2
	sigs.k8s.io/jobset v0.10.1
)
