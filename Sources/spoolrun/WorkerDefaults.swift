internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolWorker
internal import SystemPackage
internal import Transfer

extension WorkerOptions {
  /// Takes in what the spool's `defaults` say, and prints what a person should know of it.
  /// - Parameter authorities: of `--cacert`, which takes the place of `cacert:`.
  /// - Throws: the exit status, after a message.
  mutating func takeDefaults(of spool: Spool, authorities: String?) throws {
    let name = "\(escaped(spool.location))/defaults"
    do {
      defaults = try spool.defaults()
      network = try defaults.networkOptions(of: spool) { Terminal.error("\(name): \($0)", .warning) }
    } catch {
      Terminal.error("\(name): \(error)")
      throw ExitStatus.configuration.code
    }
    guard let authorities else { return }
    guard access(authorities, R_OK) == 0 else {
      Terminal.error("--cacert \(escaped(authorities)): \(Errno(rawValue: Glibc.errno))")
      throw ExitStatus.configuration.code
    }
    self.authorities = authorities
    network.authorities = authorities
  }
}
