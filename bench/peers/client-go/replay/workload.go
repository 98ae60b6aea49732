package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	subjects = strings.Fields(`account address ad alert anchor audit auth billing booking campaign cart catalog checkout
		claim config consent coupon crawler currency customer delivery device document email event export feed fraud
		geo identity image inbox index ingest inventory invoice label ledger listing loyalty market media menu
		message metrics offer order partner payment pricing profile promo quota quote ranking rating receipt
		recommendation refund report review risk rule scheduler search session shipping stock subscription tax
		tenant tracking transfer translation upload usage video voucher wallet warehouse webhook wishlist`)
	roles = strings.Fields(`api gateway worker consumer producer cache proxy frontend backend sync importer exporter
		processor store controller resolver aggregator notifier validator renderer scorer archiver router broker`)
	teams = strings.Fields(`atlas aurora basalt beacon birch cedar cobalt comet copper coral delta ember falcon fjord
		flint garnet glacier harbor hazel indigo ivory jade juniper lagoon lark linden maple marlin mesa nimbus
		nova oak onyx opal orchid osprey pine prairie quartz raven ridge saffron sierra slate spruce tundra willow`)
	registries = []string{
		"registry.example.com", "123456789012.dkr.ecr.eu-west-1.amazonaws.com", "ghcr.io/example",
		"europe-docker.pkg.dev/example-prod/images",
	}
	variables = strings.Fields(`ADDRESS BATCH_SIZE BROKERS BUCKET CACHE_TTL CONCURRENCY DATABASE_URL ENDPOINT FEATURES
		FLUSH_INTERVAL GRPC_TARGET HEALTH_PATH HOST JWT_ISSUER KEYSPACE LEASE_SECONDS LOG_FORMAT LOG_LEVEL MAX_CONNS
		MODE OTLP_ENDPOINT PASSWORD POOL_SIZE PORT PREFIX PROFILE QUEUE_NAME RATE_LIMIT REDIS_URL REGION REPLICA_SET
		RETRIES SCHEMA SECRET_PATH SENTRY_DSN SHARDS TENANT TIMEOUT TOKEN_URL TOPIC WEBHOOK_URL WORKERS`)
)

// Values that are different in each pod are placeholders in the managedFields of its workload.
const (
	tokenPlaceholder = "kube-api-access-@@@@@"
	ownerPlaceholder = "@@owner@@"
)

// workload is what a controller makes pods of: a template, and how to name them.
type workload struct {
	seed     uint64
	name     string // of the owner
	owner    metav1.OwnerReference
	replicas int
	template corev1.Pod
	// specFields is the managedFields of the controller manager.
	specFields string
	images     map[string]string // image to digest
}

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func hex(r *rand.Rand, digits int) string {
	const alphabet = "0123456789abcdef"
	out := make([]byte, digits)
	for i := range out {
		out[i] = alphabet[r.IntN(16)]
	}
	return string(out)
}

// suffix is a random name part in the alphabet of the API server's generated names.
func suffix(r *rand.Rand, length int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, length)
	for i := range out {
		out[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(out)
}

func uid(r *rand.Rand) types.UID {
	return types.UID(fmt.Sprintf("%s-%s-4%s-a%s-%s", hex(r, 8), hex(r, 4), hex(r, 3), hex(r, 3), hex(r, 12)))
}

// newWorkload makes the workload of a number, the same one each time.
func newWorkload(seed uint64, number int) (*workload, error) {
	r := newRand(seed, uint64(number))
	service := pick(r, subjects) + "-" + pick(r, roles)
	if chance(r, 40) {
		service = pick(r, subjects) + "-" + service
	}
	service = fmt.Sprintf("%s-%d", service, number)
	w := &workload{seed: seed ^ uint64(number)<<20, images: map[string]string{}}
	controlled := true
	w.owner = metav1.OwnerReference{UID: uid(r), Controller: &controlled, BlockOwnerDeletion: &controlled}
	labels := map[string]string{"app.kubernetes.io/name": service}
	spec := &w.template.Spec
	switch kind := r.IntN(100); {
	case kind < 62:
		hash := suffix(r, 9)
		w.name, w.replicas = service+"-"+hash, 1+min(r.IntN(30), r.IntN(60))
		w.owner.APIVersion, w.owner.Kind = appsv1.SchemeGroupVersion.String(), "ReplicaSet"
		labels["pod-template-hash"] = hash
		spec.RestartPolicy = corev1.RestartPolicyAlways
	case kind < 74:
		w.name, w.replicas = service, 10+r.IntN(40)
		w.owner.APIVersion, w.owner.Kind = appsv1.SchemeGroupVersion.String(), "DaemonSet"
		labels["controller-revision-hash"], labels["pod-template-generation"] = suffix(r, 10), "1"
		spec.RestartPolicy = corev1.RestartPolicyAlways
		tolerateEverything(spec)
	case kind < 87:
		w.name, w.replicas = service, 1+r.IntN(7)
		w.owner.APIVersion, w.owner.Kind = appsv1.SchemeGroupVersion.String(), "StatefulSet"
		labels["controller-revision-hash"] = service + "-" + suffix(r, 10)
		labels["apps.kubernetes.io/pod-index"] = "0"
		labels["statefulset.kubernetes.io/pod-name"] = service
		spec.RestartPolicy = corev1.RestartPolicyAlways
	default:
		w.name, w.replicas = fmt.Sprintf("%s-%d", service, 29_000_000+r.IntN(900_000)), 1+r.IntN(12)
		w.owner.APIVersion, w.owner.Kind = batchv1.SchemeGroupVersion.String(), "Job"
		labels["batch.kubernetes.io/controller-uid"], labels["batch.kubernetes.io/job-name"] = string(w.owner.UID), w.name
		labels["controller-uid"], labels["job-name"] = string(w.owner.UID), w.name
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	w.owner.Name = w.name
	meta := &w.template.ObjectMeta
	meta.GenerateName = w.name + "-"
	meta.Namespace = pick(r, teams) + "-" + pick(r, []string{"prod", "staging", "jobs", "platform", "data"})
	meta.Labels = labels
	meta.Generation = 1
	describe(r, meta, service)
	w.fillSpec(r, service)
	fields, err := specFields(&w.template)
	w.specFields = fields
	return w, err
}

// describe adds 0 to 10 labels and 1 to 11 annotations.
func describe(r *rand.Rand, meta *metav1.ObjectMeta, service string) {
	labels := [][2]string{
		{"app", service}, {"app.kubernetes.io/instance", service + "-" + pick(r, teams)},
		{"app.kubernetes.io/version", version(r)}, {"app.kubernetes.io/component", pick(r, roles)},
		{"app.kubernetes.io/part-of", pick(r, subjects)}, {"app.kubernetes.io/managed-by", "Helm"},
		{"helm.sh/chart", "generic-service-" + version(r)}, {"team", pick(r, teams)},
		{"environment", pick(r, []string{"production", "staging", "canary"})},
		{"cost-center", fmt.Sprint(1000 + r.IntN(9000))}, {"security.istio.io/tlsMode", "istio"},
	}
	r.Shuffle(len(labels), func(i, j int) { labels[i], labels[j] = labels[j], labels[i] })
	for _, label := range labels[:min(r.IntN(len(labels)), r.IntN(2*len(labels)))] {
		meta.Labels[label[0]] = label[1]
	}
	annotations := [][2]string{
		{"checksum/config", hex(r, 64)}, {"checksum/secrets", hex(r, 64)},
		{"kubectl.kubernetes.io/restartedAt", timestamp(r).UTC().Format("2006-01-02T15:04:05Z")},
		{"prometheus.io/port", fmt.Sprint(8000 + r.IntN(2000))}, {"prometheus.io/scrape", "true"},
		{"prometheus.io/path", "/" + pick(r, subjects) + "/metrics"},
		{"kubectl.kubernetes.io/default-container", service},
		{"vault.hashicorp.com/role", service}, {"vault.hashicorp.com/agent-inject-secret-db", "database/creds/" + service},
		{"sidecar.istio.io/status", `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket","credential-socket","istio-envoy","istio-data","istio-podinfo"],"imagePullSecrets":null,"revision":"` + version(r) + `"}`},
		{"cluster-autoscaler.kubernetes.io/safe-to-evict", fmt.Sprint(chance(r, 50))},
	}
	r.Shuffle(len(annotations), func(i, j int) { annotations[i], annotations[j] = annotations[j], annotations[i] })
	// The network plugin sets the value in each pod.
	meta.Annotations = map[string]string{"cni.projectcalico.org/containerID": ""}
	for _, annotation := range annotations[:min(r.IntN(len(annotations)+1), r.IntN(len(annotations)+1))] {
		meta.Annotations[annotation[0]] = annotation[1]
	}
}

func version(r *rand.Rand) string {
	return fmt.Sprintf("%d.%d.%d", 1+r.IntN(9), r.IntN(30), r.IntN(20))
}

func tolerateEverything(spec *corev1.PodSpec) {
	for _, condition := range []string{"not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"} {
		effect := corev1.TaintEffectNoSchedule
		if strings.HasPrefix(condition, "not-") || condition == "unreachable" {
			effect = corev1.TaintEffectNoExecute
		}
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: "node.kubernetes.io/" + condition, Operator: corev1.TolerationOpExists, Effect: effect,
		})
	}
}

func (w *workload) image(r *rand.Rand, name string) string {
	image := fmt.Sprintf("%s/%s/%s:%s", pick(r, registries), pick(r, teams), name, version(r))
	if chance(r, 30) {
		image = image[:strings.LastIndex(image, ":")+1] + hex(r, 12)
	}
	w.images[image] = "sha256:" + hex(r, 64)
	return image
}

func (w *workload) fillSpec(r *rand.Rand, service string) {
	spec := &w.template.Spec
	mode := int32(420)
	expiration, grace := int64(3607), int64(30*(1+r.IntN(4)))
	if config := pick(r, []string{"config", "settings", ""}); config != "" {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: config, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: service + "-" + config}, DefaultMode: &mode,
			},
		}})
	}
	switch {
	case w.owner.Kind == "DaemonSet":
		directory := corev1.HostPathDirectoryOrCreate
		for _, path := range []string{"/var/log", "/var/lib/" + service, "/run/containerd"}[:1+r.IntN(3)] {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "host" + strings.ReplaceAll(path, "/", "-"), VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &directory},
			}})
		}
		spec.HostNetwork = chance(r, 40)
		spec.PriorityClassName = "system-node-critical"
	case w.owner.Kind == "StatefulSet":
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + service},
		}})
		spec.Subdomain = service
	}
	if chance(r, 25) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	if chance(r, 20) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: service + "-tls", DefaultMode: &mode},
		}})
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: tokenPlaceholder, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expiration, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		}},
	}})
	if chance(r, 20) {
		for index := range 1 + r.IntN(2) {
			name := fmt.Sprintf("init-%s-%d", pick(r, roles), index)
			spec.InitContainers = append(spec.InitContainers, w.container(r, service, name, 3))
		}
	}
	count := 1 + containersBeyondFirst[r.IntN(len(containersBeyondFirst))]
	for index := range count {
		name, most := service, 6
		if index > 0 {
			name, most = fmt.Sprintf("%s-%d", pick(r, roles), index), 3
		}
		container := w.container(r, service, name, most)
		w.addProbes(r, &container)
		spec.Containers = append(spec.Containers, container)
	}
	if chance(r, 30) {
		spec.Affinity = affinity(r, service)
	}
	if chance(r, 20) {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": service}},
		}}
	}
	seconds := int64(300)
	if w.owner.Kind != "DaemonSet" {
		for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	}
	spec.TerminationGracePeriodSeconds = &grace
	spec.DNSPolicy = corev1.DNSClusterFirst
	spec.ServiceAccountName = service
	spec.DeprecatedServiceAccount = service
	spec.SecurityContext = &corev1.PodSecurityContext{}
	if chance(r, 40) {
		user := int64(1000 + r.IntN(9000))
		spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user, FSGroup: &user, SeccompProfile: &corev1.SeccompProfile{
			Type: corev1.SeccompProfileTypeRuntimeDefault,
		}}
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pick(r, teams) + "-registry"}}
	}
	if chance(r, 20) {
		spec.NodeSelector = map[string]string{"node-pool": pick(r, teams), "kubernetes.io/arch": "amd64"}
	}
	spec.SchedulerName = "default-scheduler"
	priority, links, preemption := int32(0), true, corev1.PreemptLowerPriority
	spec.Priority, spec.EnableServiceLinks, spec.PreemptionPolicy = &priority, &links, &preemption
}

// containersBeyondFirst is the distribution of the number of containers: 1 to 6.
var containersBeyondFirst = []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 3, 4, 5}

func (w *workload) container(r *rand.Rand, service, name string, mostVariables int) corev1.Container {
	c := corev1.Container{
		Name: name, Image: w.image(r, name),
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy: corev1.PullIfNotPresent,
	}
	for range r.IntN(4) {
		c.Args = append(c.Args, fmt.Sprintf("--%s-%s=%s", pick(r, subjects), pick(r, roles), value(r, service)))
	}
	if chance(r, 40) {
		c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8000 + r.IntN(1000)), Protocol: corev1.ProtocolTCP}}
		if chance(r, 30) {
			c.Ports = append(c.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: int32(9000 + r.IntN(1000)), Protocol: corev1.ProtocolTCP})
		}
	}
	seen := map[string]bool{}
	// Many containers have few variables, and some have many.
	for range min(r.IntN(2*mostVariables), r.IntN(2*mostVariables), r.IntN(2*mostVariables)) {
		variable := corev1.EnvVar{Name: pick(r, variables)}
		if chance(r, 40) {
			variable.Name = strings.ToUpper(pick(r, subjects)) + "_" + variable.Name
		}
		if seen[variable.Name] {
			continue
		}
		seen[variable.Name] = true
		switch kind := r.IntN(100); {
		case kind < 10:
			variable.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				APIVersion: "v1", FieldPath: pick(r, []string{"metadata.name", "metadata.namespace", "status.podIP", "spec.nodeName"}),
			}}
		case kind < 25:
			variable.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: service + "-secrets"}, Key: strings.ToLower(variable.Name),
			}}
		default:
			variable.Value = value(r, service)
		}
		c.Env = append(c.Env, variable)
	}
	c.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(fmt.Sprintf("%dm", 10*(1+r.IntN(90)))),
		corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", 32*(1+r.IntN(40)))),
	}
	if chance(r, 70) {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", 64*(1+r.IntN(60))))}
	}
	for _, volume := range w.template.Spec.Volumes {
		if volume.Name == tokenPlaceholder {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: volume.Name, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
			})
		} else if chance(r, 40) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: "/etc/" + volume.Name + "/" + pick(r, subjects)})
		}
	}
	if chance(r, 25) {
		no, yes := false, true
		c.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	return c
}

func (w *workload) addProbes(r *rand.Rand, c *corev1.Container) {
	if len(c.Ports) == 0 || w.owner.Kind == "Job" {
		return
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP,
			}},
			InitialDelaySeconds: int32(r.IntN(30)), TimeoutSeconds: 1 + int32(r.IntN(5)), PeriodSeconds: 10, SuccessThreshold: 1,
			FailureThreshold: 3 + int32(r.IntN(4)),
		}
	}
	if chance(r, 45) {
		c.ReadinessProbe = probe("/" + pick(r, []string{"readyz", "ready", "health/ready"}))
	}
	if chance(r, 40) {
		c.LivenessProbe = probe("/" + pick(r, []string{"livez", "healthz", "health/live"}))
	}
	if chance(r, 15) {
		c.StartupProbe = probe("/startup")
	}
}

// value is a value of a variable or an argument: an address, a number, a token, a list.
func value(r *rand.Rand, service string) string {
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf("http://%s-%s.%s.svc.cluster.local:%d", pick(r, subjects), pick(r, roles), pick(r, teams), 1024+r.IntN(60000))
	case 1:
		return fmt.Sprintf("postgres://%s:%s@primary.%s.svc.cluster.local:5432/%s", service, hex(r, 16), pick(r, teams), service)
	case 2:
		return fmt.Sprint(r.IntN(100_000))
	case 3:
		return hex(r, 32)
	case 4:
		return fmt.Sprintf("%dms", r.IntN(60_000))
	default:
		return strings.Join([]string{pick(r, subjects), pick(r, teams), pick(r, roles)}, ",")
	}
}

func affinity(r *rand.Rand, service string) *corev1.Affinity {
	return &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "node-pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pick(r, teams), pick(r, teams)}},
			}}},
		}},
		PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": service}},
				TopologyKey:   corev1.LabelHostname,
			},
		}}},
	}
}

// specFields is the managedFields of the manager that created the pod, with placeholders.
func specFields(template *corev1.Pod) (string, error) {
	spec, err := asMap(&template.Spec)
	if err != nil {
		return "", err
	}
	// Set by admission plugins and the scheduler, which own no fields.
	for _, name := range []string{"nodeName", "preemptionPolicy", "priority", "priorityClassName"} {
		delete(spec, name)
	}
	metadata := map[string]any{
		"f:annotations":     setOf(template.Annotations, "cni.projectcalico.org/containerID"),
		"f:generateName":    leaf,
		"f:labels":          setOf(template.Labels, ""),
		"f:ownerReferences": map[string]any{".": leaf, `k:{"uid":"` + ownerPlaceholder + `"}`: leaf},
	}
	fields, err := json.Marshal(map[string]any{"f:metadata": metadata, "f:spec": fieldsOf(spec, true)})
	return string(fields), err
}
