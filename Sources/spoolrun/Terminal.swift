internal import Glibc
internal import Synchronization
internal import SystemPackage

/// Standard output and error, written at once and without buffers, so that lines of several processes don't mix.
enum Terminal {
  static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Whether something for standard output went nowhere. The work is done all the same.
  static var hasLostOutput: Bool { lostOutput.load(ordering: .relaxed) }
  private static let lostOutput = Atomic(false)

  /// What is closed of standard input, output and error at the start becomes /dev/null: else the next file that is opened would have its number, a job
  /// or its data, and be written to as if it were the terminal.
  static func openMissing() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // open(2) gives the lowest number that is free. Without /dev/null there is nowhere to say so.
      guard open("/dev/null", O_RDWR) == descriptor else { exit(ExitStatus.inputOutput.rawValue) }
    }
  }

  static func print(_ line: String) { write(line + "\n", to: STDOUT_FILENO) }
  static func error(_ message: String) { write("spoolrun: \(message)\n", to: STDERR_FILENO) }
  static func log(_ line: String) { write(line + "\n", to: STDERR_FILENO) }

  /// - Returns: false when nobody reads any more, or what was written has no room; the latter is said once.
  @discardableResult
  static func write(_ text: String, to descriptor: Int32) -> Bool {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        // A pipe that somebody else has made non-blocking.
        if errno == EAGAIN {
          var writable = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          _ = poll(&writable, 1, -1)
          continue
        }
        // A reader that has gone has seen enough.
        if descriptor == STDOUT_FILENO, errno != EPIPE, !lostOutput.exchange(true, ordering: .relaxed) {
          error("write standard output: \(Errno(rawValue: errno))")
        }
        return false
      }
      bytes = bytes.dropFirst(count)
    }
    return true
  }
}
