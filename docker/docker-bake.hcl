# The two images. Every variable comes from versions.json and reaches both targets as an argument of the same name:
#   docker buildx bake -f docker/docker-bake.hcl -f versions.json [release|nightly]
# `nox -s image` adds labels, secrets and the caller's options, and proves afterwards what is inside.
group "default" {
  targets = ["release", "nightly"]
}

target "pins" {
  context = "."
  args = {
    FLASHINFER_VERSION = FLASHINFER_VERSION
    CUDA_VERSION       = CUDA_VERSION
    UBUNTU_VERSION     = UBUNTU_VERSION
    PYTHON_VERSION     = PYTHON_VERSION
    TORCH_VERSION      = TORCH_VERSION
  }
}

target "release" {
  inherits   = ["pins"]
  dockerfile = "docker/Dockerfile"
  target     = "release"
  tags       = ["flashinfer-release:${FLASHINFER_VERSION}-cu${CUDA_VERSION}"]
}

target "nightly" {
  inherits   = ["pins"]
  dockerfile = "docker/Dockerfile.nightly_torch"
  target     = "nightly"
  tags       = ["flashinfer-nightly:${FLASHINFER_VERSION}-cu${CUDA_VERSION}"]
}
