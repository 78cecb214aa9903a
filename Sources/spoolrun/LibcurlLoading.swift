internal import Transfer

extension Libcurl {
  /// Loads libcurl, for a command that cannot do without.
  /// - Throws: the exit status, after a message on stderr.
  static func loadOrExit() throws {
    do throws(TransferError) { try load() } catch {
      Terminal.error(error.description)
      throw ExitStatus.unavailable.code
    }
  }
}
