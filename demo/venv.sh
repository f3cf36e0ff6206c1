# For demo/run and tests/run, which source it: finds a Python, makes a virtual environment and
# installs into it, unless that was done. $program is what messages begin with.

say() { printf '%s: %s\n' "$program" "$*" >&2; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "no Python >= 3.11 found; python3 is $(python3 --version 2>/dev/null || echo missing)."
    say "Install one (Debian, Ubuntu: sudo apt install python3 python3-venv) or set PYTHON=/path."
    exit 69
}

make_venv() { # folder
    local python version
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        say "$python cannot make virtual environments: its venv module is not installed."
        say "On Debian and Ubuntu: sudo apt install python3-venv (or python$version-venv)"
        exit 69
    fi
    say "making $1 with $("$python" --version)"
    "$python" -m venv --clear "$1"
}

install_into() { # folder, name of what is installed, then what pip is to do
    local folder=$1 stamp=$1/installed-$2 usable wanted
    shift 2
    usable='import pip, sys; assert sys.version_info >= (3, 11)'
    if ! "$folder/bin/python" -c "$usable" 2>/dev/null; then make_venv "$folder"; fi
    wanted=$("$folder/bin/python" --version | cat - pyproject.toml | cksum)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    say "installing nsys-tui and its dependencies into $folder"
    if ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2; then
        say "the installation failed, see above. It needs a package index (pip's settings apply)."
        exit 69
    fi
    # Compiled here, since an editable install is not: 0.2 s less for every start in a shell that
    # sets PYTHONDONTWRITEBYTECODE.
    "$folder/bin/python" -m compileall -q nsys_tui || true
    printf '%s\n' "$wanted" > "$stamp"
}
