internal import Spool

/// Decides whether the hook `resolve` is asked again within an attempt: after a refusal that an expired link or login
/// explains, once for each time that bytes came. Pure.
struct LinkRenewal {
  /// What servers answer to an expired link or login. Not 404: the file is gone.
  private static let statuses: Set<Int> = [400, 401, 403, 410]
  /// Fewer bytes count as a small step, and so many of these in a row as none: a server could send a byte each time.
  private static let smallStep: UInt64 = 65_536
  private static let mostSmallSteps = 100

  /// The furthest point that the data reached before the hook was last asked.
  private var reached: UInt64 = 0
  private var wasAsked = false
  private var smallSteps = SmallSteps(least: smallStep, most: mostSmallSteps)

  /// - Parameter failures: of all mirrors.
  /// - Returns: the status to ask the hook again for; nil if it is not asked.
  mutating func status(of failures: [Failure], _ progress: FetchPolicy.Progress) -> Int? {
    // With other links the data could go on although it is wrong.
    guard !failures.contains(where: { $0.code.isMismatch || $0.code == .tooLarge }),
      let status = failures.lazy.compactMap(\.status).first(where: { Self.statuses.contains($0) })
    else { return nil }
    let gained = progress.length > reached ? progress.length - reached : 0
    if wasAsked {
      smallSteps.note(gained)
      if gained == 0 || smallSteps.areTooMany { return nil }
    }
    reached = max(reached, progress.length)
    wasAsked = true
    return status
  }
}
