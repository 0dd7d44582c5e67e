"""Tables of the programs that start others or run code: their names, and which of their options take a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

SHELLS: Final = frozenset({
    "sh", "bash", "zsh", "dash", "ksh", "mksh", "oksh", "yash", "rbash", "fish", "ash", "csh", "tcsh", "elvish", "nu",
    "xonsh", "osh", "shell",
})  # fmt: skip
"""Programs that run a text; ``shell`` is ``$SHELL``."""
POWERSHELLS: Final = frozenset({"powershell", "pwsh"})


class Interpreter(NamedTuple):
    """The options of a program that runs code."""

    code: frozenset[str]
    """Options whose value is code."""
    valued: frozenset[str] = frozenset()
    """Other options that take a value."""
    attached: str = ""
    """Letters of options that take the rest of their own word as their value."""
    ends: frozenset[str] = frozenset()
    """Options whose value names the code to run; all later words are its arguments."""


class Wrapper(NamedTuple):
    """The options of a program that starts another one."""

    valued: frozenset[str] = frozenset()
    scripts: frozenset[str] = frozenset()
    """Options whose value a shell runs."""
    operands: int = 0
    """Plain words before the command, such as the duration of ``timeout``."""
    joins: bool = False
    """True if the rest is text for a shell rather than a command."""
    elsewhere: bool = False
    """True if the command runs on another machine."""
    package: bool = False
    """True if the command's first word is the name of a package."""
    exact: bool = False
    """True if it does not accept abbreviated long options."""


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


NPX_VALUES: Final = _set(
    "--registry --workspace -w --cache --userconfig --globalconfig --prefix --loglevel --node-options --script-shell "
    "--before --tag --call -c --allow-scripts --min-release-age"
)
UVX_VALUES: Final = _set(
    "-p --python --index --default-index -i --index-url --extra-index-url -f --find-links -c --constraints "
    "--constraint --overrides --override -b --build-constraints --build-constraint --env-file --cache-dir --directory "
    "--project --config-file --color --index-strategy --keyring-provider --resolution --prerelease --exclude-newer "
    "--exclude-newer-package --link-mode --python-platform --torch-backend --allow-insecure-host --trusted-host -P "
    "--upgrade-package --refresh-package --reinstall-package --no-build-package --no-binary-package "
    "--no-build-isolation-package --no-sources-package -C --config-setting --config-settings "
    "--config-settings-package --fork-strategy --with-editable --with-requirements --extra --no-extra --group "
    "--no-group --only-group --package --python-preference --python-fetch --excludes --exclude --no-editable-package"
)
PIPX_VALUES: Final = _set("--python --fetch-python --index-url -i --pip-args --with --backend")

PACKAGE_FLAGS: Final = _set("-y --yes -q --quiet")
"""Flags of the programs that run a package."""

INTERPRETERS: Final[Mapping[str, Interpreter]] = {
    "python": Interpreter(_set("-c"), _set("-W -X -Q --check-hash-based-pycs"), ends=_set("-m")),
    "node": Interpreter(
        _set("-e --eval -p --print"),
        _set("-r --require --import --loader --experimental-loader -C --conditions --env-file --env-file-if-exists "
             "--cpu-prof-dir --cpu-prof-interval --cpu-prof-name --diagnostic-dir --disable-proto --disable-warning "
             "--dns-result-order --experimental-config-file --experimental-sea-config --heap-prof-dir "
             "--heap-prof-interval --heap-prof-name --heapsnapshot-near-heap-limit --heapsnapshot-signal "
             "--icu-data-dir --input-type --inspect-port --debug-port --inspect-publish-uid --localstorage-file "
             "--max-http-header-size --network-family-autoselection-attempt-timeout --openssl-config "
             "--redirect-warnings --report-dir --report-directory --report-filename --report-signal --secure-heap "
             "--secure-heap-min --test-concurrency --test-name-pattern --test-reporter --test-reporter-destination "
             "--test-shard --test-skip-pattern --test-timeout --title --tls-cipher-list --tls-keylog "
             "--trace-event-categories --trace-event-file-pattern --trace-require-module --unhandled-rejections "
             "--use-largepages --v8-pool-size --watch-path --watch-kill-signal --allow-fs-read --allow-fs-write"),
        ends=_set("--run"),
    ),
    "bun": Interpreter(
        _set("-e --eval -p --print"),
        _set("-r --preload --require --import --cwd -c --config --env-file -d --define -l --loader --tsconfig-override "
             "--port --main-fields --extension-order --conditions --inspect-port --install"),
    ),
    "deno": Interpreter(_set("-e --eval"), _set("-c --config --import-map --lock --cert --location --seed -L")),
    "perl": Interpreter(_set("-e -E"), _set("-I"), attached="FMmixDV"),
    "ruby": Interpreter(_set("-e"), _set("-C -E -I -r --encoding --external-encoding --internal-encoding"), "FKTWx"),
    "php": Interpreter(
        _set("-r --run -B --process-begin -R --process-code -E --process-end"),
        _set("-c --php-ini -d --define -t --docroot -S --server -z --zend-extension"),
        ends=_set("-f --file -F --process-file"),
    ),
    "osascript": Interpreter(_set("-e"), _set("-l -s")),
    "tsx": Interpreter(_set("-e --eval -p --print"), _set("-r --require --import --loader --tsconfig --conditions -C")),
    "ts-node": Interpreter(_set("-e --eval -p --print"), _set("-r --require -P --project -O --compiler-options -C")),
    "lua": Interpreter(_set("-e"), _set("-l -j -O")),
    "julia": Interpreter(_set("-e --eval -E --print"), _set("-L --load -J --sysimage -p --procs -t --threads")),
    "r": Interpreter(_set("-e"), ends=_set("-f --file")),
    "elixir": Interpreter(_set("-e --eval --rpc-eval"), _set("-r -pr -pa -pz -S --sname --name --cookie")),
    "groovy": Interpreter(_set("-e"), _set("-cp --classpath")),
    "scala": Interpreter(_set("-e"), _set("-cp -classpath")),
    "clojure": Interpreter(_set("-e --eval"), _set("-i --init"), ends=_set("-m --main")),
    "racket": Interpreter(_set("-e --eval"), _set("-l -p -r -t -u")),
    "guile": Interpreter(_set("-c"), _set("-L -C -l -e"), ends=_set("-s")),
    "raku": Interpreter(_set("-e"), _set("-I -M")),
    "ghc": Interpreter(_set("-e")),
    "swift": Interpreter(_set("-e")),
    "expect": Interpreter(_set("-c"), _set("-f")),
    "sbcl": Interpreter(_set("--eval"), _set("--core --load")),
    "emacs": Interpreter(_set("--eval --execute"), _set("-l --load -f --funcall")),
    "vim": Interpreter(_set("-c --cmd -S"), _set("-u -U -i -T -s -w")),
    "make": Interpreter(_set("--eval -E"), _set("-C -f -I -j -l -o -W")),
    "awk": Interpreter(_set("-e --source"), _set("-F -v --assign --field-separator"), ends=_set("-f --file")),
    "mshta": Interpreter(frozenset()),
}  # fmt: skip
"""Programs with options that hold code to run."""

WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "sudo": Wrapper(_set(
        "-u -g -h -p -C -T -D -R -U -r -t -c -a --user --group --host --prompt --close-from --chdir --chroot "
        "--other-user --role --type --command-timeout --login-class --auth-type"
    )),
    "doas": Wrapper(_set("-u -C -a")),
    "pkexec": Wrapper(_set("--user")),
    "run0": Wrapper(_set("-u -g -D --user --group --chdir --unit --property --setenv --machine -M --slice --nice")),
    "runas": Wrapper(joins=True),
    "gsudo": Wrapper(_set("-u --user -i --integrity --loglevel")),
    "dzdo": Wrapper(_set("-u -g -h -p -C -r -t")),
    "su": Wrapper(_set("-s -g -G -w -T --shell --group --supp-group --whitelist-environment"),
                   _set("-c --command --session-command"), operands=2),
    "runuser": Wrapper(_set("-u -s -g -G -w --user --shell --group --supp-group"),
                        _set("-c --command --session-command"), operands=1),
    "env": Wrapper(_set("-u -C -P -a --unset --chdir --argv0 -S --split-string")),
    "timeout": Wrapper(_set("-s -k --signal --kill-after"), operands=1),
    "nice": Wrapper(_set("-n --adjustment")),
    "ionice": Wrapper(_set("-c -n -p -P -u --class --classdata")),
    "chrt": Wrapper(_set("-T -P -D"), operands=1),
    "taskset": Wrapper(operands=1),
    "setarch": Wrapper(operands=1),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "time": Wrapper(_set("-f -o --format --output")),
    "stdbuf": Wrapper(_set("-i -o -e --input --output --error")),
    "unbuffer": Wrapper(),
    "xargs": Wrapper(_set("-n -I -P -L -d -E -s -a -J -R -S --max-args --max-procs --max-lines --delimiter --arg-file "
                           "--max-chars --replace --process-slot-var")),
    "parallel": Wrapper(_set("-j --jobs -a --arg-file -S --sshlogin -n -N -I -C --colsep"), joins=True),
    "watch": Wrapper(_set("-n --interval -q --equexit -s --shotsdir"), joins=True),
    "flock": Wrapper(_set("-w -E --timeout --wait --conflict-exit-code --start --length"), _set("-c --command"), 1),
    "script": Wrapper(_set("-t -T -B -I -O -o -m -E -F --log-io --log-in --log-out --log-timing --logging-format "
                            "--echo --output-limit"), _set("-c --command"), operands=1),
    "ssh": Wrapper(_set("-b -B -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w"), operands=1, joins=True,
                    elsewhere=True),
    "sshpass": Wrapper(_set("-p -f -d -P")),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "winpty": Wrapper(),
    "exec": Wrapper(_set("-a")),
    "command": Wrapper(),
    "builtin": Wrapper(),
    "eval": Wrapper(joins=True),
    "start": Wrapper(),
    "wsl": Wrapper(_set("-d -u --distribution --distribution-id --user --cd --shell-type")),
    "chroot": Wrapper(_set("--userspec --groups"), operands=1),
    "unshare": Wrapper(_set("-R -w -S -G --root --wd --setuid --setgid --map-user --map-group --map-users --map-groups "
                             "--propagation --setgroups --monotonic --boottime")),
    "nsenter": Wrapper(_set("-t -S -G -W --target --setuid --setgid --wdns")),
    "setpriv": Wrapper(_set("--reuid --regid --ruid --euid --rgid --egid --groups --inh-caps --ambient-caps "
                             "--bounding-set --securebits --selinux-label --apparmor-profile --pdeathsig --reset-env")),
    "gosu": Wrapper(operands=1),
    "su-exec": Wrapper(operands=1),
    "fakeroot": Wrapper(_set("-l -s -i -b --lib --faked")),
    "firejail": Wrapper(),
    "bwrap": Wrapper(),
    "proot": Wrapper(_set("-r -b -w -q -k --rootfs --bind --cwd --qemu")),
    "systemd-run": Wrapper(_set("-u -p -E -H -M -d --unit --property --setenv --host --machine --slice --description "
                                 "--service-type --uid --gid --nice --working-directory")),
    "systemd-inhibit": Wrapper(_set("--what --who --why --mode")),
    "caffeinate": Wrapper(_set("-t -w")),
    "dbus-run-session": Wrapper(_set("--config-file --dbus-daemon")),
    "dbus-launch": Wrapper(_set("--config-file --autolaunch")),
    "xvfb-run": Wrapper(_set("-e -f -n -p -s -w --error-file --auth-file --server-num --xauth-protocol --server-args")),
    "screen": Wrapper(_set("-S -c -e -h -t -T -p")),
    "tmux new": Wrapper(_set("-s -n -c -t -x -y -e -F -f"), joins=True),
    "tmux new-session": Wrapper(_set("-s -n -c -t -x -y -e -F -f"), joins=True),
    **dict.fromkeys(
        ("xterm", "x-terminal-emulator", "gnome-terminal", "konsole", "alacritty", "kitty", "foot", "conhost"),
        Wrapper(),
    ),
    "kubectl exec": Wrapper(_set("-n -c --namespace --container --context --kubeconfig"), operands=1, elsewhere=True),
    "strace": Wrapper(_set("-e -o -p -s -u -E -P -a -b -I -O -S -X")),
    "ltrace": Wrapper(_set("-e -o -p -s -u -a -n -l -F")),
    "tini": Wrapper(_set("-p -e")),
    "dumb-init": Wrapper(_set("-r --rewrite")),
    "catchsegv": Wrapper(),
    "rlwrap": Wrapper(_set("-a -b -C -D -f -g -H -l -m -M -n -N -o -p -P -q -s -S -t -w -W -z")),
    "nodemon": Wrapper(_set("-w --watch -e --ext -i --ignore -d --delay --config --signal --cwd"), _set("-x --exec")),
    "nix-shell": Wrapper(_set("-p --packages -A --attr -I -E --expr"), _set("--run --command")),
    "npx": Wrapper(NPX_VALUES | _set("-p --package"), _set("-c --call"), package=True),
    "uvx": Wrapper(UVX_VALUES | _set("--from --with -w"), package=True, exact=True),
    "npm exec": Wrapper(NPX_VALUES | _set("-p --package"), _set("-c --call"), package=True),
    "pnpm exec": Wrapper(NPX_VALUES | _set("-C --dir --filter"), _set("-c --shell-mode"), package=True),
    "pnpm dlx": Wrapper(NPX_VALUES | _set("--package"), _set("-c --shell-mode"), package=True),
    "yarn exec": Wrapper(joins=True),
    "yarn dlx": Wrapper(_set("-p --package"), package=True),
    "bun exec": Wrapper(joins=True),
    "bun x": Wrapper(_set("-p --package"), package=True),
    "uv run": Wrapper(UVX_VALUES | _set("--with -w"), package=True, exact=True),
    "uv tool run": Wrapper(UVX_VALUES | _set("--from --with -w"), package=True, exact=True),
    "pipx run": Wrapper(PIPX_VALUES | _set("--spec"), package=True),
    "deno task": Wrapper(_set("-c --config --cwd -f --filter"), joins=True),
    "nix shell": Wrapper(),
    "nix develop": Wrapper(),
    **dict.fromkeys(
        ("poetry run", "pipenv run", "pdm run", "hatch run", "rye run", "conda run", "mamba run", "micromamba run",
         "op run", "doppler run", "infisical run", "dotenv run", "dotenvx run", "mise exec", "mise x", "asdf exec",
         "pyenv exec", "rbenv exec", "bundle exec", "devbox run", "toolbox run", "podman unshare", "lima",
         "colima nerdctl"),
        Wrapper(),
    ),
    "direnv exec": Wrapper(operands=1),
    "aws-vault exec": Wrapper(operands=1),
    "chamber exec": Wrapper(operands=1),
    "machinectl shell": Wrapper(_set("--uid -E --setenv -M -H"), operands=1),
    "vagrant ssh": Wrapper(scripts=_set("-c --command"), elsewhere=True),
}  # fmt: skip
"""Programs that start the command after them; some only with a subcommand."""

ALIASES: Final = {
    "nodejs": "node", "pypy": "python", "pythonw": "python", "py": "python", "ipython": "python", "jython": "python",
    "graalpy": "python", "micropython": "python", "bunx": "npx", "pnpx": "npx", "npm x": "npm exec",
    "sudo-rs": "sudo", "sudoedit": "sudo", "su-rs": "su", "luajit": "lua", "rscript": "r", "clj": "clojure",
    "bb": "clojure",
    "gawk": "awk", "mawk": "awk", "nawk": "awk", "nvim": "vim", "vi": "vim", "ex": "vim", "view": "vim",
    "ts-node-esm": "ts-node", "esno": "tsx", "jiti": "tsx", "babel-node": "node",
    "gmake": "make", "gtimeout": "timeout", "genv": "env", "gnice": "nice", "gnohup": "nohup", "gxargs": "xargs",
    "gstdbuf": "stdbuf", "docker-init": "tini", "perl5": "perl", "remsh": "ssh", "autossh": "ssh", "dbclient": "ssh",
    "busybox-static": "busybox", "proxychains": "nohup", "torsocks": "nohup", "torify": "nohup", "linux": "setarch",
    "bash-static": "bash", "zsh-static": "zsh", "rundll32": "mshta",
}  # fmt: skip
"""Other names of the same programs."""


DOCKERS: Final = _set("docker podman podman-remote nerdctl finch container")
DOCKER_GLOBAL_VALUES: Final = _set(
    "-c --context --config -H --host -l --log-level --tlscacert --tlscert --tlskey --url --connection --identity "
    "--root --runroot --storage-driver --storage-opt --cgroup-manager --conmon --events-backend --hooks-dir "
    "--module "
    "--namespace -n --address -a --data-root --snapshotter --cni-path --cni-netconfpath --hosts-dir --out --runtime "
    "--network-cmd-path --network-config-dir --tmpdir --volumepath --ssh --imagestore --cdi-spec-dir"
)
"""Options of docker, podman and nerdctl before the subcommand that take a value."""
COMPOSE_GLOBAL_VALUES: Final = _set(
    "-f --file -p --project-name --profile --env-file --project-directory --parallel --progress --ansi"
)
DOCKER_VALUES: Final = _set(
    "-a --attach --add-host --annotation --arch --authfile --blkio-weight --blkio-weight-device --cap-add --cap-drop "
    "--cert-dir --cgroup-conf --cgroup-parent --cgroupns --cgroups --chrootdirs --cidfile --conmon-pidfile "
    "--cosign-key "
    "--cpu-count --cpu-percent --cpu-period --cpu-quota --cpu-rt-period --cpu-rt-runtime --cpu-shares -c --cpus "
    "--cpuset-cpus --cpuset-mems --creds --decryption-key --detach-keys --device --device-cgroup-rule "
    "--device-read-bps --device-read-iops --device-write-bps --device-write-iops --dns --dns-opt --dns-option "
    "--dns-search --domainname --entrypoint -e --env --env-file --env-merge --expose --gidmap --gpus --group-add "
    "--group-entry --health-cmd --health-interval --health-log-destination --health-max-log-count "
    "--health-max-log-size --health-on-failure --health-retries --health-start-interval --health-start-period "
    "--health-startup-cmd --health-startup-interval --health-startup-retries --health-startup-success "
    "--health-startup-timeout --health-timeout -h --hostname --hostuser --image-volume --init-ctr --init-path "
    "--intel-rdt-closid --io-maxbandwidth --io-maxiops --ip --ip6 --ipc --ipcns --isolation --kernel-memory -l --label "
    "--label-file --link --link-local-ip --log-driver --log-opt --mac-address -m --memory --memory-reservation "
    "--memory-swap --memory-swappiness --mount --name --net --network --net-alias --network-alias "
    "--oom-score-adj --os --passwd-entry --personality --pid --pidfile --pids-limit --platform --pod --pod-id-file "
    "--preserve-fd --preserve-fds -p --publish --pull --rdt-class --requires --restart --retry --retry-delay --rlimit "
    "--runtime --sdnotify --seccomp-policy --secret --security-opt --shm-size --shm-size-systemd --snapshotter "
    "--stop-signal --stop-timeout --storage-opt --subgidname --subuidname --sysctl --systemd --timeout --tmpfs --tz "
    "--uidmap --ulimit --umask --unsetenv -u --user --userns --uts --variant -v --volume --volume-driver "
    "--volumes-from -w --workdir --cosign-certificate-identity --verify --ipfs-address --soci-index-digest"
)
"""Options of run and create that take a value."""
DOCKER_EXEC_VALUES: Final = _set(
    "-e --env --env-file -u --user -w --workdir --detach-keys --preserve-fd --preserve-fds --cidfile"
)
"""Options of exec that take a value."""
DOCKER_FLAGS: Final = _set(
    "-i --interactive -t --tty -d --detach -P --publish-all -q --quiet --rm --init --privileged --read-only "
    "--no-healthcheck --oom-kill-disable --sig-proxy --disable-content-trust --help --use-api-socket --replace "
    "--tls-verify --env-host --http-proxy --no-hosts --no-hostname --rmi --rootfs --passwd --read-only-tmpfs "
    "--unsetenv-all"
)
"""Options of run, create and exec that take no value."""

SUBCOMMANDS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    name: tuple(
        tuple(phrase.split()[1:]) for phrase in (*WRAPPERS, *ALIASES) if " " in phrase and phrase.split()[0] == name
    )
    for name in {phrase.split()[0] for phrase in WRAPPERS if " " in phrase}
}
"""The subcommands with which a program starts another one."""
