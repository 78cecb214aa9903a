internal import CLinux
internal import Glibc
internal import SystemPackage

/// The program that has started this worker and watches it, such as systemd (sd_notify(3)).
@WorkerLoop final class ServiceManager {
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
      unsent = ServiceNews.worthKeeping(of: unsent)
      return nil
    }
    unsent = []
    defer { isLost = error > 0 }
    return error > 0 && !isLost ? "\(Errno(rawValue: error))" : nil
  }

  func untilDue(at now: Int64) -> Int64 { unsent.isEmpty ? news.untilDue(at: now) : Self.pause }
}

/// What the service manager is told, and when (sd_notify(3)). Times are in milliseconds.
struct ServiceNews {
  enum Stage { case starting, ready, stopping }

  /// So long after a text of what the worker does there is no other.
  static let statusInterval: Int64 = 5000
  /// So long after it was found unchanged it is not asked for again.
  private static let lookInterval: Int64 = 1000

  /// Half the time after which the manager takes the worker for hung; nil if it does not watch it.
  private let beat: Int64?
  private var nextBeat: Int64 = 0
  private var stage = Stage.starting
  private var status = ""
  private var nextStatus: Int64 = 0
  /// Whether the worker may do something else than what was told last.
  private var mayHaveChanged = true

  /// - Parameter watchdog: `WATCHDOG_USEC`, in microseconds; nil if there is none.
  init(watchdog: Int64?) { beat = watchdog.map { max(1, $0 / 2000) } }

  /// What to tell now; empty if nothing is due.
  /// - Parameter status: what the worker does, for a person.
  mutating func due(_ new: Stage, _ status: @autoclosure () -> String, at now: Int64) -> [String] {
    var news: [String] = []
    if new != stage {
      news.append(new == .stopping ? "STOPPING=1" : "READY=1")
      (stage, nextStatus) = (new, 0)
    }
    if let beat, now >= nextBeat {
      news.append("WATCHDOG=1")
      nextBeat = now + beat
    }
    mayHaveChanged = true
    if now >= nextStatus {
      let text = status()
      if text != self.status { news.append("STATUS=\(text)") }
      nextStatus = now + (text == self.status ? Self.lookInterval : Self.statusInterval)
      (self.status, mayHaveChanged) = (text, false)
    }
    return news
  }

  /// What is to be sent again of what could not be sent: all that is said once, and the last of the rest.
  static func worthKeeping(of unsent: [String]) -> [String] {
    let stages = unsent.filter { ["READY=1", "STOPPING=1"].contains($0) }
    return stages + unsent.filter { !stages.contains($0) }.suffix(2)
  }

  func untilDue(at now: Int64) -> Int64 {
    let untilBeat = beat == nil ? Int64.max : nextBeat - now
    return max(0, mayHaveChanged ? min(untilBeat, nextStatus - now) : untilBeat)
  }
}
