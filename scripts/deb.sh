#!/usr/bin/env bash
# Builds the Debian packages from the committed sources, has lintian look at them (an error fails), and runs debian/tests
# against them. usage: deb.sh [OUT [ROOT]]   OUT: dist. ROOT: a Debian system in a folder (mmdebstrap makes one) in which
# the packages are installed and tested; without it that part is left out.
# JOBS as in make; HK_CMAKE_ARGS reach cmake; DEB_BUILD_PROFILES=pkg.hankel.nocuda leaves the device code out.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd) root=${2:-}
for tool in dpkg-buildpackage dh git; do
  command -v $tool > /dev/null || { echo "deb: needs $tool (apt-get install dpkg-dev debhelper dh-python git)"; exit 1; }
done
version=$(dpkg-parsechangelog -S Version)
grep -q "HK_VERSION_TEXT \"$version\"" include/hankel.h || { echo "debian/changelog says $version, hankel.h does not"; exit 1; }
tree=build-deb/hankel-$version
rm -rf build-deb
mkdir -p "$tree"
git archive HEAD | tar -x -C "$tree"
# debhelper replaces HOME, where the caches are
export HK_FATBIN_CACHE=${HK_FATBIN_CACHE-${XDG_CACHE_HOME:-$HOME/.cache}/hankel/fatbin} CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache}
export DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)} noautodbgsym ${DEB_BUILD_OPTIONS:-}"
(cd "$tree" && dpkg-buildpackage -b -us -uc)
cp build-deb/*.deb "$out/"
if command -v lintian > /dev/null; then
  lintian --fail-on error --suppress-tags bad-distribution-in-changes-file build-deb/hankel_"$version"_*.changes
else
  echo "deb: lintian is not installed: left out"
fi
[ -n "$root" ] || exit 0
mkdir -p "$root/srv/hankel/debian"
cp -r "$tree/README.md" "$tree/tests" "$root/srv/hankel/"
cp -r "$tree/debian/tests" "$root/srv/hankel/debian/"
cp build-deb/*.deb "$root/srv/"
chroot "$root" sh -c 'dpkg -i /srv/*.deb && cd /srv/hankel && debian/tests/readme'
