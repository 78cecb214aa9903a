internal import Spool

/// Reads claims in `cur/`, without standing still with a network file system.
@WorkerLoop
final class ClaimReader {
  enum Reading {
    /// What the claim says; nil for one that is gone or cannot be read.
    case text(JobText?)
    /// The file system has not answered yet. Ask again later.
    case late
  }

  /// Milliseconds that the loop waits for a claim.
  static let patience: Int64 = 200
  /// Seconds after which a claim that could not be read is asked for again.
  static let pause: Int64 = 2

  private let spool: Spool
  private let late = LateAnswers<FileName, JobText?>()

  init(_ spool: Spool) { self.spool = spool }

  /// - Parameter patience: milliseconds that the loop may wait.
  func read(_ claim: FileName, patience: Int64 = patience) -> Reading {
    // Threads cost more than a call that never waits for another host.
    if spool.kind.isLocal { return .text(Self.text(of: claim, in: spool)) }
    let answer = late.answer(to: claim, patience: patience) { [spool] in Self.text(of: claim, in: spool) }
    return answer.map { .text($0) } ?? .late
  }

  /// Who cannot read it, cannot do more with the error: the claim that follows reports it.
  private nonisolated static func text(of claim: FileName, in spool: Spool) -> JobText? {
    do throws(SpoolError) { return try spool.job(.cur, claim) } catch { return nil }
  }
}
