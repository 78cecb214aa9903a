internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// Prints a spool each second, one picture after the other, until a signal arrives or the reader closes its end. Where
/// there is no window, or for programs.
struct StatusWatch {
  private(set) var series: SnapshotSeries
  let picture: (SpoolSnapshot) -> String

  /// Milliseconds between two pictures.
  private static let interval: Int64 = 1000

  /// - Throws: ``SpoolError``.
  mutating func run() throws(SpoolError) {
    let signals = spoolrun_stop_signals()
    guard signals >= 0 else { throw SpoolError(call: .open, path: "signalfd", errno: Errno(rawValue: Glibc.errno)) }
    while true {
      let snapshot = try series.next()
      let began = Terminal.milliseconds()
      guard Terminal.write(picture(snapshot), to: STDOUT_FILENO) else { return }
      var polled = pollfd(fd: signals, events: Int16(POLLIN), revents: 0)
      if poll(&polled, 1, Int32(max(0, began + Self.interval - Terminal.milliseconds()))) > 0 { return }
    }
  }
}
