/// The progress bar of `verify`. Pure.
package struct VerifyPicture: Sendable {
  /// What is known at one moment.
  package struct Progress: Sendable {
    /// Receipts in all.
    package var files: Int
    /// Receipts whose payload is being read or was.
    package var begun = 0
    /// Receipts that are done with.
    package var ended = 0
    /// Receipts among ``ended`` whose payload is not sound.
    package var bad = 0
    /// Bytes of the payloads that were begun.
    package var known: UInt64 = 0
    /// Bytes among ``known`` that were read.
    package var read: UInt64 = 0

    /// None of `files` receipts has been read yet.
    package init(files: Int) { self.files = files }
  }

  private var meter = RateMeter()
  private var progress = Progress(files: 0)
  private var turns = 0

  /// Of a verification that has not begun.
  package init() {}

  /// Takes in the progress. `milliseconds` are of any clock that never jumps.
  package mutating func update(_ progress: Progress, at milliseconds: Int64) {
    self.progress = progress
    turns += 1
    meter.add(progress.read, at: milliseconds)
  }

  /// The size of payloads that were not begun is estimated: the mean of the others.
  private var total: (bytes: UInt64, isEstimate: Bool)? {
    let rest = progress.files - max(progress.begun, progress.ended)
    if rest <= 0 { return (progress.known, false) }
    guard progress.begun > 0 else { return nil }
    let mean = Double(progress.known) / Double(progress.begun)
    return (progress.known &+ UInt64(min(mean * Double(rest), 1e18)), true)
  }

  private var label: TotalLabel {
    TotalLabel(
      count: "\(progress.ended) of \(progress.files) files", shortCount: "\(progress.ended)/\(progress.files)",
      troubles: progress.bad > 0 ? [("\(progress.bad) bad", .red)] : [])
  }

  /// - Parameter width: the maximum number of columns.
  package func line(width: Int, _ look: Look) -> StyledLine {
    BarLayout(width: width, names: [], label: label, look: look).total(
      BarLayout.Figures(
        bytes: progress.read, total: total?.bytes, rate: meter.rate,
        left: secondsLeft(progress.read, of: total?.bytes, rate: meter.rate),
        certainty: total?.isEstimate == true ? .estimate : .exact, turn: turns))
  }
}
