"""All planted mistakes, at least one per stage; those of a package have a file of their own."""

from __future__ import annotations

from tests.faults_of_backend import BACKEND_FAULTS
from tests.faults_of_programs import PROGRAM_FAULTS
from tests.faults_of_rewriting import REWRITING_FAULTS
from tests.faults_of_satura import SATURA_FAULTS

FAULTS = (*PROGRAM_FAULTS, *REWRITING_FAULTS, *BACKEND_FAULTS, *SATURA_FAULTS)
