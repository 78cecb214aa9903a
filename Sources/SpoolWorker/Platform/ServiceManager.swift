internal import CLinux
internal import Glibc
internal import SystemPackage

/// The program that has started this worker and watches it, such as systemd (sd_notify(3)).
@WorkerLoop
final class ServiceManager {
  /// The variables by which it passes on what concerns the worker alone (sd_notify(3), sd_watchdog_enabled(3),
  /// sd_listen_fds(3), systemd.exec(5)). The worker's children do not get them.
  nonisolated static let variables: Set<String> = [
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
  ]
  /// How soon a message is sent again that could not be sent, in milliseconds.
  private static let pause: Int64 = 200

  private let socket: String
  private var news: ServiceNews
  /// What could not be sent yet, because the manager is behind.
  private var unsent: [String] = []
  /// Whether the last message could not be sent for another reason, which has been reported.
  private var isLost = false

  /// The manager that the environment names; nil if none wants to be told.
  nonisolated init?() {
    func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    guard let socket = variable("NOTIFY_SOCKET"), !socket.isEmpty else { return nil }
    self.socket = socket
    let isMine = variable("WATCHDOG_PID").map { $0 == "\(getpid())" } ?? true
    let watchdog = isMine ? variable("WATCHDOG_USEC").flatMap { Int64($0) } : nil
    news = ServiceNews(watchdog: watchdog.flatMap { $0 > 0 ? $0 : nil })
  }

  /// Tells what is due.
  /// - Returns: why the manager cannot be told; nil if it can, or if this has been returned before.
  func tell(_ stage: ServiceNews.Stage, _ status: @autoclosure () -> String, at now: Int64) -> String? {
    unsent += news.due(stage, status(), at: now)
    if unsent.isEmpty { return nil }
    let error = -spoolrun_notify(socket, unsent.joined(separator: "\n"))
    // Its queue is full. The worker must not wait for it.
    if error == EAGAIN {
      unsent = Array(unsent.suffix(8))
      return nil
    }
    unsent = []
    defer { isLost = error > 0 }
    return error > 0 && !isLost ? "\(Errno(rawValue: error))" : nil
  }

  /// How long nothing is due.
  func untilDue(at now: Int64) -> Int64 { unsent.isEmpty ? news.untilDue(at: now) : Self.pause }
}
