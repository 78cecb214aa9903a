package import Spool
internal import Transfer

extension Digests {
  /// Those that a server states, as far as they are in base64.
  init(_ stated: [StatedDigest]) {
    self.init()
    for digest in stated {
      guard let algorithm = DigestAlgorithm(rawValue: digest.algorithm.rawValue) else { continue }
      self[algorithm] = Digest(algorithm, base64: digest.base64)
    }
  }
}

extension JobRequest {
  /// The digest that the server states of this version and that the data has to have: the strongest one, as weaker ones
  /// beside it are often stale. None if the job declares a digest, because the job's word counts more than the
  /// server's.
  package func checkedDigests(of version: RemoteVersion?) -> Digests {
    guard let version, !expected.provesContent else { return Digests() }
    let strongest = DigestAlgorithm.byStrength.first { version.stated[$0] != nil }
    return version.stated.only(strongest.map { [$0] } ?? [])
  }

  /// The digests to compute for data of this version.
  package func computedDigests(for version: RemoteVersion?) -> Set<DigestAlgorithm> {
    computedDigests.union(checkedDigests(of: version).algorithms)
  }
}
