internal import Glibc
internal import SpoolStatus

/// How far a long list is, in a line on standard error, if that is a terminal.
final class ListProgress {
  /// Milliseconds between two looks of the line; a list that takes less shows none.
  private static let interval: Int64 = 200

  private let isShown = Terminal.isCapable(STDERR_FILENO)
  private let look = Terminal.look(STDERR_FILENO)
  private var region = LiveRegion()
  private var next = Terminal.milliseconds() + interval
  private var calls = 0

  func update(_ text: () -> String) {
    calls += 1
    guard isShown, calls.isMultiple(of: 64) else { return }
    let now = Terminal.milliseconds()
    guard now >= next, let size = Terminal.size(STDERR_FILENO) else { return }
    next = now + Self.interval
    let line = StyledLine(String(text().prefix(max(0, size.columns - 1))), look)
    Terminal.write(region.draw([line], columns: size.columns), to: STDERR_FILENO)
  }

  /// Erases the line.
  func finish() { region.eraseOnStandardError() }
}
