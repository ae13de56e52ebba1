/* The bytes of the inner library, for the linker of the outer one. The assembler runs in the folder of inner.so. */
    .section .rodata
    .balign 16
    .globl arroyo_udf_inner_file
    .hidden arroyo_udf_inner_file
arroyo_udf_inner_file:
    .incbin "inner.so"
    .globl arroyo_udf_inner_end
    .hidden arroyo_udf_inner_end
arroyo_udf_inner_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
