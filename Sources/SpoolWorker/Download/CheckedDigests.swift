package import Spool
internal import Transfer

extension Digests {
  /// Those that a server states, as far as they are in base64.
  init(_ stated: [StatedDigest]) {
    self.init()
    for digest in stated {
      let algorithm = DigestAlgorithm(digest.algorithm)
      self[algorithm] = Digest(algorithm, base64: digest.base64)
    }
  }
}

extension DigestAlgorithm {
  fileprivate init(_ algorithm: StatedDigest.Algorithm) {
    switch algorithm {
    case .sha256: self = .sha256
    case .sha512: self = .sha512
    case .sha1: self = .sha1
    case .md5: self = .md5
    case .crc32: self = .crc32
    }
  }
}

extension JobRequest {
  /// The digest that the server states of this version and that the data has to have: the strongest one, as weaker ones
  /// beside it are often stale. None if the job declares a digest, because the job's word counts more than the
  /// server's.
  package func checkedDigests(of version: RemoteVersion?) -> Digests {
    guard let version, !expected.provesContent else { return Digests() }
    let strongest = [DigestAlgorithm.sha512, .sha256, .sha1, .md5, .crc32].first { version.stated[$0] != nil }
    return version.stated.only(strongest.map { [$0] } ?? [])
  }

  /// The digests to compute beside CRC-32 for data of this version.
  package func computedDigests(for version: RemoteVersion?) -> Set<DigestAlgorithm> {
    computedDigests.union(checkedDigests(of: version).algorithms).subtracting([.crc32])
  }
}
