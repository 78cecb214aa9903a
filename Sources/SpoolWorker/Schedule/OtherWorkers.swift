internal import Spool

/// The outputs of the jobs that other workers of the spool run. Their claims are in `cur/`. Each is read once.
@WorkerLoop
struct OtherWorkers {
  private let spool: Spool
  private let claims: ClaimReader
  private let own: [UInt8]
  private var outputs: [FileName: ExactText?] = [:]
  /// When ``outputs`` was read, in milliseconds of the loop's clock.
  private var readAt: Int64?
  /// For so many milliseconds nobody new is looked for, because each claim of a backlog of small files would read the
  /// directory. Two workers that claim within this time may fetch the same bytes.
  private static let pause: Int64 = 250

  init(_ spool: Spool, _ claims: ClaimReader) {
    self.spool = spool
    self.claims = claims
    own = Array(":\(spool.owner.text)".utf8)
  }

  /// The job of another worker that has the same output, and that output; nil if there is none.
  ///
  /// To be asked after the claim's rename: of two workers that claim at the same time, the later one sees the other's
  /// claim. A worker that died still has its claims, and they come first.
  private mutating func job(like request: JobRequest) throws(SpoolError) -> (name: FileName, output: ExactText)? {
    let now = LoopExecutor.milliseconds()
    let isFresh = readAt.map { now - $0 < Self.pause } ?? false
    // Most workers are alone, and the output is in a URL that has to be parsed.
    if isFresh, outputs.isEmpty { return nil }
    guard let output = JobPlan.rootAndOutput(of: request) else { return nil }
    if isFresh, !outputs.values.contains(output) { return nil }
    readAt = now
    let stream = try spool.stream(.cur)
    var current: [FileName: ExactText?] = [:]
    // For all claims together: if others write many, reading them must not take the time of this worker's transfers.
    let end = now + ClaimReader.patience
    while let name = try stream.next() {
      guard ClaimName(name)?.owner != nil, name.bytes.suffix(own.count) != own[...] else { continue }
      if let known = outputs[name] {
        current[name] = known
      } else if case .text(let text) = claims.read(name, patience: max(0, end - LoopExecutor.milliseconds())) {
        current[name] = self.output(of: text)
      }
    }
    outputs = current
    let other = outputs.first { $0.value == output }.flatMap { ClaimName($0.key)?.job.fileName }
    return other.map { ($0, output) }
  }

  /// The output for which a claimed job has to wait; nil if it need not wait.
  mutating func awaited(by claim: Claim) throws(SpoolError) -> AwaitedOutput? {
    let journal = claim.text.journal
    // Without its last attempt's end, a job may need just its last move, or have data of which nothing is recorded.
    guard claim.origin != .cur, !journal.attempts.isOpen, !claim.isStandingOrder,
      // Otherwise the next claim would not know that it came through `new/` again.
      !claim.origin.takesDrops || journal.isEmpty || claim.isRequeueNoted,
      let other = try job(like: claim.text.request)
    else { return nil }
    return AwaitedOutput(other.output.text, of: other.name, now: spool.now())
  }

  /// A claim that cannot be read is another user's or gone, and no reason to wait.
  private func output(of text: JobText?) -> ExactText? {
    guard let request = text?.request, !request.isStandingOrder else { return nil }
    return JobPlan.rootAndOutput(of: request)
  }
}
