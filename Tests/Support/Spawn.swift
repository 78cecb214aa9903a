import Glibc
import Synchronization

/// posix_spawn(3) of `argv[0]` (a path), in a process group of its own.
/// - Parameters:
///   - input: its standard input; nil for /dev/null.
///   - output: its standard output. It inherits no other descriptors than the three.
func spawn(
  _ argv: [String], environment: [String: String], directory: String? = nil, input: Int32? = nil, output: Int32,
  errors: Int32
) throws(TestSupportError) -> pid_t {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  if let input {
    posix_spawn_file_actions_adddup2(&actions, input, 0)
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
  }
  posix_spawn_file_actions_adddup2(&actions, output, 1)
  posix_spawn_file_actions_adddup2(&actions, errors, 2)

  var attributes = posix_spawnattr_t()
  posix_spawnattr_init(&attributes)
  defer { posix_spawnattr_destroy(&attributes) }
  var noSignals = sigset_t()
  sigemptyset(&noSignals)
  posix_spawnattr_setsigmask(&attributes, &noSignals)
  // However the tests were started: a shell has SIGINT ignored in what it puts into the background.
  var allSignals = sigset_t()
  sigfillset(&allSignals)
  posix_spawnattr_setsigdefault(&attributes, &allSignals)
  posix_spawnattr_setpgroup(&attributes, 0)
  posix_spawnattr_setflags(
    &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

  let argv = directory.map { ["/usr/bin/env", "-C", $0] + argv } ?? argv
  let variables = environment.map { "\($0.key)=\($0.value)" }
  var arguments: [UnsafeMutablePointer<CChar>?] = argv.map { strdup($0) } + [nil]
  var settings: [UnsafeMutablePointer<CChar>?] = variables.map { strdup($0) } + [nil]
  defer { for pointer in arguments + settings { free(pointer) } }
  var processID = pid_t()
  let code = descriptorCreation.withLock { _ in
    posix_spawn(&processID, argv[0], &actions, &attributes, &arguments, &settings)
  }
  guard code == 0 else { throw TestSupportError("posix_spawn", argv[0], errno: code) }
  return processID
}

/// Processes that still run when the tests end, after one that failed: they end as well.
enum Leftovers {
  private static let processes = Mutex<Set<pid_t>>([])
  private static let atEnd: Void = {
    atexit { for process in Leftovers.processes.withLock({ $0 }) { kill(-process, SIGKILL) } }
  }()

  static func add(_ process: pid_t) {
    _ = atEnd
    processes.withLock { _ = $0.insert(process) }
  }
  static func remove(_ process: pid_t) { processes.withLock { _ = $0.remove(process) } }
}
