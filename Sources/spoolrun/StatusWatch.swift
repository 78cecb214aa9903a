internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// Shows a spool, refreshed each second, until a signal arrives or the reader closes its end.
struct StatusWatch {
  enum Picture {
    case lines([StyledLine])
    /// Printed one after the other: there is no terminal, or the format is JSON.
    case text(String)
  }

  private(set) var spool: Spool
  let limit: Int
  /// Makes the picture for a window of that size; the size is nil if there is no window.
  let picture: (SpoolSnapshot, Terminal.Size?) -> Picture

  private static let interval: Int64 = 1000
  /// Milliseconds between two looks at the window's size.
  private static let glance: Int64 = 200

  init(spool: Spool, limit: Int, picture: @escaping (SpoolSnapshot, Terminal.Size?) -> Picture) {
    self.spool = spool
    self.limit = limit
    self.picture = picture
  }

  mutating func run() throws(SpoolError) {
    let signals = spoolrun_stop_signals()
    guard signals >= 0 else { throw SpoolError(call: .open, path: "signalfd", errno: Errno(rawValue: Glibc.errno)) }
    var rates = RateBook()
    var region = LiveRegion()
    while true {
      // The spool was removed and created again, or replaced.
      if try !spool.isInPlace(), let next = try spool.reopened() { spool = next }
      var snapshot = try SnapshotReader(spool, limit: limit).read()
      let began = Terminal.milliseconds()
      rates.apply(to: &snapshot, at: began)
      var size = windowSize
      guard show(picture(snapshot, size), &region, size) else { return }
      while Terminal.milliseconds() < began + Self.interval {
        if isReadable(signals, milliseconds: min(Self.glance, began + Self.interval - Terminal.milliseconds())) {
          // Erases the ^C that the terminal has echoed.
          if size != nil { Terminal.write("\r\u{1B}[K", to: STDOUT_FILENO) }
          return
        }
        guard let now = windowSize, now != size else { continue }
        size = now
        guard show(picture(snapshot, size), &region, size) else { return }
      }
    }
  }

  private var windowSize: Terminal.Size? { Terminal.isCapable(STDOUT_FILENO) ? Terminal.size(STDOUT_FILENO) : nil }

  private func show(_ picture: Picture, _ region: inout LiveRegion, _ size: Terminal.Size?) -> Bool {
    switch picture {
    case .lines(let lines): Terminal.write(region.draw(lines, columns: size?.columns ?? 80), to: STDOUT_FILENO)
    case .text(let text): Terminal.write(text, to: STDOUT_FILENO)
    }
  }

  private func isReadable(_ descriptor: Int32, milliseconds: Int64) -> Bool {
    var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, Int32(max(0, milliseconds))) > 0
  }
}
