# SPDX-License-Identifier: Apache-2.0
"""Checks deploy/kubernetes: fields that Kubernetes and the MPI operator know, their types, and what a job relies on.

usage: manifests.py FILE...; prints a line for each fault; exit code 1 if there is one, 77 without PyYAML.

Only the fields that bitsweep's manifests may use are listed: those of kubeflow.org/v2beta1 MPIJob
(manifests/base/kubeflow.org_mpijobs.yaml of the operator), batch/v1 Job and core/v1 PodSpec. An unknown field is a fault,
as Kubernetes refuses or drops it.
"""

import sys

try:
    import yaml
except ImportError:
    print("skipped: PyYAML is missing (python3-yaml)")
    sys.exit(77)

RESOURCES = {"*": str}
CONTAINER = {
    "name!": str,
    "image!": str,
    "command": [str],
    "args": [str],
    "workingDir": str,
    "env": [{"name!": str, "value": str}],
    "resources": {"requests": RESOURCES, "limits": RESOURCES},
    "readinessProbe": {"tcpSocket": {"port!": int}, "periodSeconds": int, "initialDelaySeconds": int},
    "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool}],
    "securityContext": {"runAsUser": int, "runAsNonRoot": bool},
}
POD = {
    "metadata": {"labels": {"*": str}, "annotations": {"*": str}},
    "spec!": {
        "containers!": [CONTAINER],
        "restartPolicy": {"Never", "OnFailure", "Always"},
        "terminationGracePeriodSeconds": int,
        "securityContext": {"runAsUser": int, "runAsGroup": int, "runAsNonRoot": bool, "fsGroup": int},
        "nodeSelector": {"*": str},
        "volumes": [
            {
                "name!": str,
                "persistentVolumeClaim": {"claimName!": str},
                "emptyDir": {"medium": {"Memory", ""}, "sizeLimit": str},
            }
        ],
    },
}
METADATA = {"name!": str, "namespace": str, "labels": {"*": str}}
REPLICAS = {"replicas": int, "restartPolicy": {"Never", "OnFailure"}, "template!": POD}
KINDS = {
    ("kubeflow.org/v2beta1", "MPIJob"): {
        "apiVersion!": str,
        "kind!": str,
        "metadata!": METADATA,
        "spec!": {
            "slotsPerWorker": int,
            "mpiImplementation": {"OpenMPI", "Intel", "MPICH"},
            "launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"},
            "sshAuthMountPath": str,
            "runLauncherAsWorker": bool,
            "runPolicy": {
                "cleanPodPolicy": {"None", "Running", "All"},
                "ttlSecondsAfterFinished": int,
                "activeDeadlineSeconds": int,
                "backoffLimit": int,
                "suspend": bool,
            },
            "mpiReplicaSpecs!": {"Launcher!": REPLICAS, "Worker!": REPLICAS},
        },
    },
    ("batch/v1", "Job"): {
        "apiVersion!": str,
        "kind!": str,
        "metadata!": METADATA,
        "spec!": {
            "backoffLimit": int,
            "activeDeadlineSeconds": int,
            "ttlSecondsAfterFinished": int,
            "podFailurePolicy": {
                "rules!": [
                    {
                        "action!": {"FailJob", "Ignore", "Count"},
                        "onExitCodes": {"containerName": str, "operator!": {"In", "NotIn"}, "values!": [int]},
                        "onPodConditions": [{"type!": str, "status": str}],
                    }
                ]
            },
            "template!": POD,
        },
    },
}
FAILURES = {2, 65, 70, 74, 76}  # that a second try would meet again


def faults_of(value, rule, path):
    """Faults of value against a rule: a type, a set of words, [rule of each] or {field: rule}, with ! where needed."""
    if isinstance(rule, set):
        return [] if value in rule else [f"{path}: {value!r} is not one of {sorted(rule)}"]
    if isinstance(rule, type):
        fits = isinstance(value, rule) and (rule is bool or not isinstance(value, bool))
        return [] if fits else [f"{path}: {value!r} is not {rule.__name__}"]
    if isinstance(rule, list):
        if not isinstance(value, list):
            return [f"{path}: not a list"]
        return [fault for i, one in enumerate(value) for fault in faults_of(one, rule[0], f"{path}[{i}]")]
    if not isinstance(value, dict):
        return [f"{path}: not a mapping"]
    faults = []
    names = {name.rstrip("!"): part for name, part in rule.items()}
    for name, part in value.items():
        if name not in names and "*" not in names:
            faults.append(f"{path}.{name}: no such field")
        else:
            faults += faults_of(part, names.get(name, names.get("*")), f"{path}.{name}")
    faults += [f"{path}.{name[:-1]}: missing" for name in rule if name.endswith("!") and name[:-1] not in value]
    return faults


def pod_faults(spec, path):
    """Volumes that are mounted are there; limits cover requests; the user is not root."""
    faults = []
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    for container in spec["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                faults.append(f"{path}: no volume {mount['name']}")
    if not spec.get("securityContext", {}).get("runAsNonRoot"):
        faults.append(f"{path}: may run as root")
    return faults


def words_of(spec):
    container = spec["containers"][0]
    return container.get("command", []) + container.get("args", [])


def mpi_job_faults(job):
    """The launcher waits for the workers, asks for as many ranks as they take, and is not started again."""
    spec = job["spec"]
    replicas = spec["mpiReplicaSpecs"]
    launcher, worker = (replicas[name]["template"]["spec"] for name in ("Launcher", "Worker"))
    words = words_of(launcher)
    slots = spec.get("slotsPerWorker", 1) * replicas["Worker"].get("replicas", 1)
    faults = pod_faults(launcher, "Launcher") + pod_faults(worker, "Worker")
    if words[words.index("-n") + 1] != str(slots):
        faults.append(f"{slots} slots, but not -n {slots}")
    if spec.get("launcherCreationPolicy") != "WaitForWorkersReady":
        faults.append("the launcher does not wait for the workers")
    if "readinessProbe" not in worker["containers"][0]:
        faults.append("workers are ready before sshd is")
    if spec["runPolicy"].get("backoffLimit") != 0 or replicas["Launcher"].get("restartPolicy") != "Never":
        faults.append("Kubernetes would repeat a failure that is final")
    if "--retries" not in words or "--resume" not in words:
        faults.append("nothing goes on after exit code 75")
    return faults


def job_faults(job):
    """Final failures end the job, others do not."""
    spec = job["spec"]
    pod = spec["template"]["spec"]
    faults = pod_faults(pod, "pod")
    final = set()
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        if rule["action"] == "FailJob":
            final |= set(rule["onExitCodes"]["values"])
    if final != FAILURES:
        faults.append(f"exit codes {sorted(final)} are final, not {sorted(FAILURES)}")
    if pod.get("restartPolicy") != "Never":
        faults.append("podFailurePolicy needs restartPolicy: Never")
    if spec.get("backoffLimit", 6) == 0 or "--resume" not in words_of(pod):
        faults.append("nothing goes on after exit code 75")
    return faults


def check(job):
    rule = KINDS.get((job.get("apiVersion"), job.get("kind")))
    if rule is None:
        return [f"unknown kind {job.get('apiVersion')} {job.get('kind')}"]
    faults = faults_of(job, rule, job["kind"])
    if not faults:
        faults = mpi_job_faults(job) if job["kind"] == "MPIJob" else job_faults(job)
    return faults


def main(files):
    num_faults = 0
    for file in files:
        with open(file, encoding="utf-8") as stream:
            for job in yaml.safe_load_all(stream):
                for fault in check(job):
                    num_faults += 1
                    print(f"{file}: {fault}")
    return 1 if num_faults or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
