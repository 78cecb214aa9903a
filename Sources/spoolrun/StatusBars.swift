internal import Glibc
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization

/// The progress bars of a run, below the log on standard error.
final class StatusBars: Sendable {
  private struct State {
    var picture = RunPicture()
    var region = LiveRegion()
    var nextSentence: Int64 = 0
  }

  private let state = Mutex(State())
  private let look: Look
  /// Whether the cursor can be moved. If not, a sentence now and then replaces the bars.
  private let isCapable: Bool

  private static let sentenceInterval: Int64 = 10_000
  /// More lines would scroll the user's own text away.
  private static let mostLines = 20

  /// nil when no progress is to be shown.
  init?(_ mode: ProgressMode, _ format: LogFormat) {
    isCapable = Terminal.isCapable(STDERR_FILENO)
    switch mode {
    case .never: return nil
    case .auto: if !isCapable || format == .json { return nil }
    case .always: break
    }
    look = Terminal.look(STDERR_FILENO)
  }

  func update(_ progress: WorkerProgress) {
    state.withLock { state in
      let now = Terminal.milliseconds()
      state.picture.update(progress, at: now)
      if isCapable {
        draw(&state)
        return
      }
      guard !state.picture.isIdle, now >= state.nextSentence else { return }
      // The first call only starts the interval: there is nothing to report yet.
      if state.nextSentence > 0 { Terminal.error(state.picture.sentence, .info) }
      state.nextSentence = now + Self.sentenceInterval
    }
  }

  /// Prints lines above the bars.
  func print(_ text: String) {
    state.withLock { state in
      // What the terminal has echoed, such as ^C, is erased with the bars.
      if !isCapable || !draw(&state, above: [text]) { Terminal.log(text) }
    }
  }

  /// Erases the bars.
  func finish() { state.withLock { $0.region.eraseOnStandardError() } }

  /// - Returns: whether there is a terminal to draw on.
  @discardableResult
  private func draw(_ state: inout State, above: [String] = []) -> Bool {
    guard let size = Terminal.size(STDERR_FILENO) else { return false }
    // The last column stays empty: terminals differ in where the cursor is after a full line.
    let lines = state.picture.lines(width: size.columns - 1, height: min(Self.mostLines, size.rows - 1), look)
    if lines.isEmpty, state.region.isEmpty, above.isEmpty { return true }
    Terminal.write(state.region.draw(lines, above: above, columns: size.columns), to: STDERR_FILENO)
    return true
  }
}

extension LiveRegion {
  /// Erases what is on standard error, if anything is.
  mutating func eraseOnStandardError() {
    guard !isEmpty, let size = Terminal.size(STDERR_FILENO) else { return }
    Terminal.write(erase(columns: size.columns), to: STDERR_FILENO)
  }
}
