internal import ArgumentParser
internal import Glibc
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization

enum ProgressMode: String, ExpressibleByArgument, CaseIterable, Sendable { case auto, always, never }

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
      if isCapable { return draw(&state) }
      guard !state.picture.isIdle, now >= state.nextSentence else { return }
      // The first call only starts the interval: there is nothing to report yet.
      if state.nextSentence > 0 { Terminal.error(state.picture.sentence, .info) }
      state.nextSentence = now + Self.sentenceInterval
    }
  }

  func print(_ line: String) {
    state.withLock { state in
      if state.region.isEmpty { return Terminal.log(line) }
      draw(&state, above: [line])
    }
  }

  /// Erases the bars.
  func finish() { state.withLock { $0.region.eraseOnStandardError() } }

  private func draw(_ state: inout State, above: [String] = []) {
    guard let size = Terminal.size(STDERR_FILENO), !state.region.isEmpty || !state.picture.isIdle else { return }
    // The last column stays empty: terminals differ in where the cursor is after a full line.
    let lines = state.picture.lines(width: size.columns - 1, height: min(Self.mostLines, size.rows - 1), look)
    Terminal.write(state.region.draw(lines, above: above, columns: size.columns), to: STDERR_FILENO)
  }
}

extension LiveRegion {
  /// Erases what is on standard error, if anything is.
  mutating func eraseOnStandardError() {
    guard !isEmpty, let size = Terminal.size(STDERR_FILENO) else { return }
    Terminal.write(erase(columns: size.columns), to: STDERR_FILENO)
  }
}
