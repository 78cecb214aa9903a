internal import Glibc
internal import Transfer

/// Runs the rig many times from one process: `FaultRig serve`. Each run is a fork(2) of a process that has loaded
/// libcurl and its forty libraries already, which costs more than all the rest of a run.
///
/// Reads requests from standard input, a line each: the path of a file for what the run writes, and the run's
/// arguments, with TABs between them. Answers each run's end with a line: `exited STATUS` or `killed SIGNAL`.
enum ForkServer {
  /// - Parameter run: what the child does; its result is the exit status.
  static func serve(_ run: ([String]) -> Int32) -> Never {
    do {
      _ = try TransferEngine(TransferOptions())
    } catch {
      answer("\(error)")
      exit(74)
    }
    while let line = readLine() {
      let fields = line.split(separator: "\t").map(String.init)
      guard let output = fields.first else { exit(64) }
      let child = fork()
      if child == 0 {
        redirect(to: output)
        exit(run(Array(fields.dropFirst())))
      }
      var status: Int32 = 0
      guard child > 0, waitpid(child, &status, 0) == child else {
        answer("fork or waitpid: \(String(cString: strerror(errno)))")
        exit(71)
      }
      let signal = status & 0x7F
      answer(signal == 0 ? "exited \((status >> 8) & 0xFF)" : "killed \(signal)")
    }
    exit(0)
  }

  /// Swift declares fork(2) unavailable, because a child of a process with threads may do next to nothing. This one has
  /// none.
  private static func fork() -> pid_t {
    guard let symbol = dlsym(nil, "fork") else { return -1 }
    return unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
  }

  private static func redirect(to output: String) {
    let null = open("/dev/null", O_RDONLY)
    let file = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard null >= 0, file >= 0, dup2(null, 0) == 0, dup2(file, 1) == 1, dup2(file, 2) == 2 else { exit(71) }
    close(null)
    close(file)
  }

  private static func answer(_ text: String) {
    let bytes = Array("\(text)\n".utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }
}
