internal import Spool

/// Checks complete data against what the job declares and the server stated, then with the spool's `verify` hook.
@WorkerLoop struct Verification {
  let plan: JobPlan
  /// Where it is to be published; nil for the spool's `files`.
  let directory: String?
  let data: PartData
  let environment: JobEnvironment
  let hooks: Hooks
  let signature: [UInt8]?
  let fetchSignature: @WorkerLoop () async throws -> [UInt8]?
  private var claim: Claim { data.claim }

  func run() async throws {
    try check()
    let stated = data.request.expected.checkedDigests(of: data.version)
    if !stated.isEmpty { try await check(stated: stated) }
    if let signature {
      do { try await check(signature) } catch let failure as Failure where failure.code == .badSignature {
        // The file may have been replaced before its signature was.
        guard let newer = try await fetchSignature(), newer != signature else { throw failure }
        try await check(newer)
      }
    }
    if hooks.has(.verify) { try await askHook() }
  }

  private func check() throws(Failure) {
    let part = data.part
    // The data may be from before `max-size` was lowered.
    if let failure = Failure.tooLarge(part.length, most: data.request.maxSize) { throw failure }
    var expected = data.request.expected
    expected.size = data.total
    guard let mismatch = expected.mismatch(part.mark) else { return }
    var failure = Failure(mismatch)
    if let coding = data.version?.coding {
      failure.reason += "; it came in Content-Encoding \(escaped(coding)): `encoded: decode` in the job decodes it"
    }
    throw failure
  }

  /// Compares the data with the digests that the server stated, if the job declares none.
  private func check(stated: Digests) async throws {
    let part = data.part
    let missing = stated.algorithms.subtracting(part.algorithms)
    if !missing.isEmpty {
      // Only a later response stated them. The data is read once.
      let received = part.mark
      let found = try await part.read(from: .zero(part.algorithms.union(missing)), to: received.offset)
      if let mismatch = Expectation(digests: received.digests).mismatch(found) {
        throw Failure(mismatch, reason: "the data read back differs from what was received")
      }
      part.adopt(found)
    }
    guard let mismatch = Expectation(digests: stated).mismatch(part.mark) else { return }
    let advice = "declare the right digest in the job if the server is wrong"
    throw Failure(mismatch, reason: "the data does not have the digest that the server states: \(advice)")
  }

  private func check(_ signature: [UInt8]) async throws {
    let seal = try data.part.seal()
    let (spool, stop, file, job) = (claim.spool, hooks.stop, data.part.descriptor, claim.job)
    let (signer, last) = try await runBlocking {
      (try SignatureCheck(spool, stop).signer(ofOpen: file, by: signature), try KeptVersions.lastSigned(spool, of: job))
    }
    try await checkSeal(seal, "the data was changed while its signature was checked")
    try signer.check(notBefore: last, "the file was signed before the last version")
    data.signed = signer.mark
    let facts = Fields().with("by", signer.name).with("signed", signer.time)
    environment.log(Event("signed", .info, job: claim.job.fileName, facts))
  }

  private func askHook() async throws {
    let payload = Array("\(claim.spool.location)/".utf8) + data.part.path.bytes
    let seal = try data.part.seal()
    let facts = environment.facts(plan, directory, data.part.mark.offset, data.part.mark.digests, in: claim.spool)
    let answer = await hooks.run(.verify, job: claim.job.fileName, facts + [.init("SPOOLRUN_PAYLOAD", payload)])
    // Before the check of the seal: rejected data is set aside, whether or not the hook changed it.
    if case .no(let reason) = answer { throw Failure(.rejected, "the verify hook rejected the data: \(reason)") }
    try await checkSeal(seal, "the verify hook changed the data: it must work on a copy")
    if case .nothing(let reason) = answer {
      throw environment.failure(.hook, "the verify hook gave no verdict: \(reason)")
    }
  }

  /// A hook may run as root, which can write to any file. The data is read again only if its file's times or size
  /// changed.
  private func checkSeal(_ seal: FileStatus.Stamp, _ reason: String) async throws {
    let part = data.part
    let stamp = try part.stamp()
    if stamp == seal { return }
    func changed(_ expected: String, _ found: String) -> Failure {
      Failure(.hookChanged, reason, expected: expected, found: found)
    }
    guard stamp.size == seal.size else { throw changed("\(seal.size)", "\(stamp.size)") }
    let expected = part.mark
    let found = try await part.read(from: .zero(expected.states.algorithms), to: expected.offset)
    if let mismatch = Expectation(digests: expected.digests).mismatch(found) {
      throw changed(mismatch.expected, mismatch.found)
    }
  }
}
